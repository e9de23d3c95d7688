/**
 * The command line, `causeway`: `doctor`, `demo`, `topology`, `bandwidth`, `send-recv` and `vortex`.
 *
 * The room is a program, not a library: it may use every other room, and is not imported, so its door exports
 * nothing. `main.ts` is what is run: it finds the command in the list of `commands.ts`, and says by the exit code how it
 * went. A command describes itself (`command.ts`), from which come its help and the reading of its options
 * (`arguments.ts`), whose errors name what may have been meant (`nearest.ts`). `examine` (`doctor.ts`), `runDemo`
 * (`demo.ts`), `topology/`, `bandwidth/`, `sendRecv` (`send_recv/`) and `describeVortex` (`vortex.ts`) do the work. The
 * demo and `send-recv` start themselves once more as a second process, by the commands `demo-peer` and
 * `send-recv-server`.
 *
 * @module
 */
export {};
