/**
 * Which modules share a file of the bundle. Every file that a command loads costs about half a millisecond, whatever its size;
 * so what is loaded together lies together, and a run loads 50 files where it would load twice as many. A group holds little that
 * some command loads for another part of it only: `first` is all of --version, a search loads no box, a box no agent, and what
 * is imported when it is first used lies with nobody. No two groups may need each other, or a class is extended before it is there.
 */
export const CHUNKS: readonly { readonly name: string; readonly of: readonly RegExp[] }[] = [
  {
    name: "first",
    of: [
      /\/src\/(?:core\/text\/visible|render\/tty\/output|config\/places|platform\/folders)\.ts$/,
      /^(?!.*\/node_modules\/).*\/package\.json$/,
    ],
  },
  // Forms are many, and made when they are loaded: who only reads settings needs none of these, and those of events are read by few.
  { name: "events", of: [/\/src\/core\/events\.ts$/] },
  {
    name: "told",
    of: [/\/src\/core\/(?:box-log|installed|work-plan|handoff|hook-form|custom-tools|tool)\.ts$/],
  },
  // What a command is, the settings that it reads, and the words of core.
  {
    name: "start",
    of: [
      /\/src\/core\/(?!text\/visible\.ts)|\/node_modules\/jsonc-parser\//,
      /\/src\/(?:app\/(?:host|stderr-messages|interruption|named-engine|project\/project-trust)|cli\/(?:command|command-line|settings|terminal)|extensions\/(?:brought|trust)|platform\/safe-files|render\/tty\/columns)\.ts$/,
      /\/src\/config\/(?:config-document|load-config|settings-schema|setting-words|tightening)\.ts$/,
    ],
  },
  // With what it needs for help and errors; its debug is loaded for the engine, too.
  {
    name: "oclif",
    of: [
      /\/node_modules\/(?:@oclif\/core|debug|ms|supports-color|has-flag|ejs|lilconfig|wordwrap|clean-stack|get-package-type|typescript)\//,
      // Of the chat's there are newer ones, further down.
      /^(?!(?:.*\/node_modules\/){2}).*\/node_modules\/(?:ansis|ansi-styles|ansi-regex|color-convert|color-name|emoji-regex|escape-string-regexp|indent-string|is-fullwidth-code-point|string-width|strip-ansi|widest-line|wrap-ansi)\//,
    ],
  },
  {
    name: "settings",
    of: [/\/src\/config\/(?:config-layers|mcp-settings|setting-rules|kubernetes-settings)\.ts$/],
  },
  { name: "models", of: [/\/src\/models\//] },
  { name: "agent", of: [/\/src\/(?:agent|tools)\/|\/src\/policy\/decide-tool\.ts$/] },
  { name: "paths", of: [/\/src\/policy\/(?:paths\/|path-pattern\.ts)/] },
  { name: "policy-context", of: [/\/src\/(?:app\/project\/policy-context|config\/policy-file)\.ts$/] },
  { name: "policy", of: [/\/src\/policy\/|\/node_modules\/unbash\//] },
  // What is looked at in a workspace before there is a box, and where there is none.
  {
    name: "workspace",
    of: [
      /\/src\/(?:boxes\/protect\/(?:open-folder|protected-walk|scan|enclosing|protected-mounts|git-config|solid|git-pointer)|boxes\/box-workspace|app\/project\/repository-around)\.ts$/,
    ],
  },
  { name: "engine", of: [/\/node_modules\/(?:dockerode|docker-modem|tar-fs|tar-stream|pump|smol-toml)\//] },
  {
    name: "box",
    of: [
      /\/src\/(?:docker\/(?:box|isolation|podman|network)|boxes\/(?:protect|life|layers|runner))\//,
      /\/src\/docker\/(?:life\/(?:container-processes|protected-record|reap)|unstarted-container|engine-remedy|dial|engine|engine-endpoint|engine-failure|container-spec|egress\/registry-mirrors)\.ts$/,
      /\/src\/docker\/(?:images\/(?:apt-packages|image-progress|base-image|build-image|image-inputs)|environments\/(?:environment-record|system-layer|environment-store|version-files|ecosystems|detect-recipe|project-files|recipe|dockerfile|dockerfile-words|dockerfile-copies|devcontainer|context-files|environment-mounts|system-steps|taken-paths|tool-variables))\.ts$/,
      /\/src\/(?:boxes\/(?:box-command|disk-watch|jobs|box|box-labels|network-relay|relay-streams)|app\/(?:box-services|box-access|secret-bindings|granted-network|project\/container-context|environments\/(?:environment-recipe|workspace-environment)|sessions\/checkpoint-access)|platform\/host-programs|sessions\/checkpoints\/store-place)\.ts$/,
    ],
  },
  {
    name: "run",
    of: [
      /\/src\/app\/(?:run\/|(?:harness-requests|model-access|model-terms|search\/run-index|extensions\/(?:mcp-plans|mcp-words|web-tools|open-extensions))\.ts$)/,
      /\/src\/sessions\/checkpoints\/(?:checkpoint-quota|folder-names|packs|checkpoint-store|recorder)\.ts$/,
    ],
  },
  { name: "database", of: [/\/src\/platform\/(?:lock|sqlite-connection)\.ts$/] },
  {
    name: "sessions",
    of: [
      /\/src\/(?:sessions\/(?!audit\/audit-decisions)|app\/sessions\/session-access\.ts)|\/node_modules\/diff\//,
    ],
  },
  // A question to an index that is fresh: neither files are read for it nor models asked.
  {
    name: "asked",
    of: [
      /\/src\/(?:app\/search\/(?:search-request|search-access|search-vectors)|search\/(?:embedded\/|rank\/|index\/(?:index-answer|look-for-changes|open-index|opened-store)|chunk\/chunk-limits|read\/sieve|open-store|index-failure|index-words|embed-outcome|unit-vectors|qdrant\/plain-address|vector-worth))/,
    ],
  },
  {
    name: "progress",
    of: [
      /\/src\/render\/(?:tty\/(?:line-marks|live-status|model-pace|paced-writer|progress-line|run-activity)|lists\/search-lines)\.ts$/,
    ],
  },
  { name: "render", of: [/\/src\/render\/(?!html\/|tui\/|tty\/output\.ts)/] },
];
