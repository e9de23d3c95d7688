/** Makes garbage until it is collected; Bun can collect on request. */
export function collectGarbage(): void {
  const bun = Reflect.get(globalThis, "Bun") as { gc(force: true): void } | undefined;
  let kept: object[] = [];
  for (let i = 0; i < 50; i++) kept = Array.from({ length: 50_000 }, (_, j) => ({ i, j, kept: kept.length }));
  const force = true;
  bun?.gc(force);
}
