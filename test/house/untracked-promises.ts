/**
 * Loaded before a test file: for each promise, Node's runner records which test created it, to name the test of an
 * uncaught error; that takes a twelfth of the computing time of unit tests. Here such an error makes the file fail and
 * shows where it was thrown.
 */
import hooks from "node:async_hooks";

const { createHook } = hooks;
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
// The runner uses this version when it loads; everything else uses Node's own.
await import("node:test");
hooks.createHook = createHook;

process.on("uncaughtExceptionMonitor", (error) => console.error(error));
process.on("unhandledRejection", (reason) => console.error(reason));
