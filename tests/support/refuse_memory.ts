/** Refuses executable memory: to be imported before what is then tested. */
import { refuseExecutableMemory } from "./refused_memory.ts";

if (!refuseExecutableMemory("seccomp")) throw new Error("the kernel has no seccomp filters");
