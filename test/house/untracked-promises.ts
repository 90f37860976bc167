/**
 * Loaded before a test file: Node's runner notes for each promise which test made it, to name the test of an error that
 * nobody caught; that is a twelfth of what unit tests compute. Here such an error makes the file red, and says where it
 * was thrown.
 */
import hooks from "node:async_hooks";

const { createHook } = hooks;
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
// The runner takes what is there when it loads, everything else what Node has.
await import("node:test");
hooks.createHook = createHook;

process.on("uncaughtExceptionMonitor", (error) => console.error(error));
process.on("unhandledRejection", (reason) => console.error(reason));
