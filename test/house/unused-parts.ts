/**
 * Loaded before a test file: parts of packages that the bundle leaves out (`bin/lazy-requires.ts`), as empty modules.
 * They are half of what a test loads that asks the engine.
 */
import { createRequire, Module } from "node:module";

const require = createRequire(import.meta.url);
for (const part of ["dockerode/lib/session.js", "dockerode/lib/buildkit.js", "docker-modem/lib/ssh.js"]) {
  const file = require.resolve(part);
  require.cache[file] = Object.assign(new Module(file), { loaded: true });
}
