/**
 * Which modules share a file of the bundle. Every file that a command loads costs half a millisecond, whatever its size;
 * so what is loaded together lies together. A group holds nothing that some command loads for another part of it only:
 * `main.js` and what it needs for --version share none with others, nor does what is imported when it is first used.
 */
export const CHUNKS: readonly { readonly name: string; readonly test: RegExp }[] = [
  { name: "output", test: /\/src\/(?:core\/text\/visible|render\/tty\/output)\.ts$/ },
  {
    name: "command",
    test: /\/src\/(?:app\/(?:host|stderr-messages|interruption)|cli\/(?:command|command-line))\.ts$/,
  },
  // The forms of what is told and given are many, and made when they are loaded: who only reads settings needs none.
  {
    name: "events",
    test: /\/src\/core\/(?:events|box-log|installed|work-plan|handoff|hook-form|custom-tools|tool)\.ts$/,
  },
  { name: "core", test: /\/src\/core\/(?!text\/visible\.ts)/ },
  {
    name: "config",
    test: /\/src\/(?:config\/(?:config-document|load-config|settings-schema|setting-words|tightening)\.ts|cli\/settings\.ts|app\/project\/project-trust\.ts|extensions\/(?:brought|trust)\.ts|platform\/safe-files\.ts)|\/node_modules\/jsonc-parser\//,
  },
  { name: "agent", test: /\/src\/(?:agent\/(?!action-judge\.ts)|tools\/)/ },
  { name: "models", test: /\/src\/models\// },
  { name: "sessions", test: /\/src\/sessions\/(?!checkpoints\/|audit\/audit-decisions)/ },
  { name: "settings", test: /\/src\/config\/(?:config-layers|mcp-settings|setting-rules)\.ts$/ },
  // A question to an index that is fresh: neither files are read for it nor models asked.
  {
    name: "asked",
    test: /\/src\/(?:app\/search\/(?:search-request|search-access|search-vectors)|search\/(?:embedded\/|rank\/|index\/(?:index-answer|look-for-changes|mending|open-index|opened-store)|chunk\/chunk-limits|read\/sieve|open-store|index-failure|index-words|embed-outcome|unit-vectors|qdrant\/plain-address))/,
  },
  {
    name: "progress",
    test: /\/src\/render\/(?:tty\/(?:columns|line-marks|live-status|model-pace|paced-writer|progress-line|run-activity)|lists\/search-lines)\.ts$/,
  },
  { name: "render", test: /\/src\/render\/(?!html\/|tui\/|tty\/output\.ts)/ },
];
