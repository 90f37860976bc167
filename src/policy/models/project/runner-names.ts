import { only } from "./parts.ts";

/** Reporters that come with a test runner; any other name is a package or a file that it loads. */
export const REPORTERS = `default verbose basic dot json junit tap tap-flat hanging-process github-actions blob tree summary agent
  spec min list progress nyan landing doc json-stream xunit markdown html lcov line minimal null github`;

/** Nobody is there to end what watches. */
export const WATCHES_NOT = only({ "--watch --watchAll": "false" }, "option.unknown");
