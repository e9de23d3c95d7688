/**
 * The command line, `causeway`: `doctor`, `demo`, `send-recv` and `vortex`.
 *
 * The room is a program, not a library: it may use every other room, and is not imported, so its door exports
 * nothing. `main.ts` is what is run: it reads the command and its options, calls `examine` (`doctor.ts`), `runDemo`
 * (`demo.ts`), `sendRecv` (`send_recv/`) or `describeVortex` (`vortex.ts`), prints, and says by the exit code how it
 * went. The demo and `send-recv` start themselves once more as a second process, by the commands `demo-peer` and
 * `send-recv-server`.
 *
 * @module
 */
export {};
