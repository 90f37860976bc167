/**
 * Which modules share a file of the bundle. Every file that a command loads costs half a millisecond, whatever its size;
 * so what is loaded together lies together. A group holds nothing that some command loads for another part of it only:
 * `main.js` and what it needs for --version share none with others, nor does what is imported when it is first used.
 */
export const CHUNKS: readonly { readonly name: string; readonly test: RegExp }[] = [
  { name: "output", test: /\/src\/(?:core\/visible|render\/tty\/output)\.ts$/ },
  {
    name: "command",
    test: /\/src\/(?:app\/(?:host|stderr-messages|interruption)|cli\/(?:command|command-line))\.ts$/,
  },
  { name: "core", test: /\/src\/core\/(?!visible\.ts)/ },
  {
    name: "config",
    test: /\/src\/config\/(?:config-document|config-layers|load-config|settings-schema)\.ts$/,
  },
  { name: "agent", test: /\/src\/(?:agent\/(?!action-judge\.ts)|tools\/)/ },
  { name: "models", test: /\/src\/models\// },
  { name: "sessions", test: /\/src\/sessions\/(?!checkpoints\/|audit\/audit-decisions)/ },
  { name: "render", test: /\/src\/render\/(?!html\/|tui\/|tty\/output\.ts)/ },
];
