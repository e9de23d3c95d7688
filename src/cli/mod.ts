/**
 * The command line, `causeway`: `doctor`, `demo`, `topology`, `bandwidth`, `send-recv` and `vortex`.
 *
 * The room is a program, not a library: it may use every other room, and is not imported, so its door exports nothing.
 * `main.ts` is the entry point: it finds the command in the list of `commands.ts`, and reports the outcome by the exit
 * code. A command describes itself (`command.ts`): the description gives its help and the parsing of its options
 * (`arguments.ts`), whose errors suggest what may have been meant (`did_you_mean.ts`). `examine` (`doctor.ts`),
 * `runDemo` (`demo.ts`), `topology/`, `bandwidth/`, `sendRecv` (`send_recv/`) and `describeVortex` (`vortex.ts`) do
 * the work. The demo and `send-recv` start this program once more as a second process, through the commands
 * `demo-peer` and `send-recv-server`.
 *
 * @module
 */
export {};
