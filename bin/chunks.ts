/**
 * Which modules share a file of the bundle. Loading a file costs a command about half a millisecond, whatever its size;
 * modules that are loaded together therefore lie together, and a run loads 50 files instead of twice as many. A group
 * contains little that a command does not need when it loads the group: `first` is all that --version needs, a search
 * loads no box, a box no agent, and a module imported on first use is in no group. No two groups may need each other,
 * or a class is extended before it exists.
 */
export const CHUNKS: readonly { readonly name: string; readonly of: readonly RegExp[] }[] = [
  {
    name: "first",
    of: [
      /\/src\/(?:core\/visible|render\/tty\/output|config\/places|platform\/folders)\.ts$/,
      /^(?!.*\/node_modules\/).*\/package\.json$/,
    ],
  },
  // Schemas are many, and are created when loaded: a command that only reads settings needs none of these, and few
  // commands read events.
  { name: "events", of: [/\/src\/core\/events\.ts$/] },
  {
    name: "run-schemas",
    of: [/\/src\/core\/(?:run-record|added-programs|tool)\.ts$/],
  },
  // The basis of every command: command classes, settings, and core types.
  {
    name: "start",
    of: [
      /\/src\/core\/(?!visible\.ts)|\/node_modules\/jsonc-parser\//,
      /\/src\/(?:app\/(?:host|stderr-messages|interruption|project\/project-trust)|cli\/(?:command|settings|terminal)|extensions\/(?:brought|named-files|trust)|platform\/safe-files|render\/tty\/columns)\.ts$/,
      /\/src\/config\/(?:load-config|settings-schema|setting-words)\.ts$/,
    ],
  },
  // With everything it needs for help and errors; the engine uses its debug package too.
  {
    name: "oclif",
    of: [
      /\/node_modules\/(?:@oclif\/core|debug|ms|supports-color|has-flag|ejs|lilconfig|wordwrap|clean-stack|get-package-type|typescript)\//,
      // The chat uses newer versions of these, in nested folders.
      /^(?!(?:.*\/node_modules\/){2}).*\/node_modules\/(?:ansis|ansi-styles|ansi-regex|color-convert|color-name|emoji-regex|escape-string-regexp|indent-string|is-fullwidth-code-point|string-width|strip-ansi|widest-line|wrap-ansi)\//,
    ],
  },
  {
    name: "settings",
    of: [/\/src\/config\/(?:mcp-settings|setting-rules)\.ts$/],
  },
  { name: "models", of: [/\/src\/models\//] },
  { name: "agent", of: [/\/src\/(?:agent|tools)\/|\/src\/policy\/decide-tool\.ts$/] },
  { name: "paths", of: [/\/src\/policy\/paths\//] },
  { name: "policy-context", of: [/\/src\/app\/project\/policy-context\.ts$/] },
  { name: "policy", of: [/\/src\/policy\/|\/node_modules\/unbash\//] },
  // Checks of a workspace before there is a box, or without one.
  {
    name: "workspace",
    of: [
      /\/src\/(?:boxes\/workspace\/(?:box-workspace|git-directory|protected-mounts|protected-walk|protection|safe-paths)|app\/project\/repository-around)\.ts$/,
    ],
  },
  { name: "engine", of: [/\/node_modules\/(?:dockerode|docker-modem|tar-fs|tar-stream|pump|smol-toml)\//] },
  {
    name: "box",
    of: [
      /\/src\/docker\/(?:box\/(?!box-list)|(?:base-image|box-image|image-inputs|image-progress|unstarted-container|engine-install|engine|engine-endpoint|container-spec)\.ts$)/,
      /\/src\/docker\/(?:egress\/(?:box-network|host-trust|network-settings)\.ts$|environments\/(?!installed-packages))/,
      /\/src\/(?:boxes\/(?!canaries|masked-box).*|app\/(?:boxes\/(?:box-access|granted-network|workspace-environment)|sessions\/checkpoint-access)|platform\/host-programs|sessions\/checkpoints\/store-place)\.ts$/,
    ],
  },
  {
    name: "run",
    of: [
      /\/src\/app\/(?:run\/|(?:model-access|project\/(?:mcp-plans|open-extensions))\.ts$)/,
      /\/src\/sessions\/checkpoints\/(?:recorder|checkpoint-store|packs|saved-states)\.ts$/,
    ],
  },
  { name: "database", of: [/\/src\/platform\/sqlite\.ts$/] },
  {
    name: "sessions",
    of: [/\/src\/(?:sessions\/|app\/sessions\/session-access\.ts)|\/node_modules\/diff\//],
  },
  // A question to a fresh index: it reads no files and asks no models.
  {
    name: "search-query",
    of: [
      /\/src\/app\/project\/(?:search-request|search-access)\.ts$/,
      /\/src\/search\/(?:index-folders|catalog|ranked-query|rank-hits|tokens|weights|open-index|search-store|index-vectors)\.ts$/,
      /\/src\/search\/files\/workspace-scan\.ts$/,
      /\/src\/search\/stores\/(?:embedded-vectors|embedded-store|lexical-search|open-store|segments)\.ts$/,
    ],
  },
  {
    name: "progress",
    of: [/\/src\/render\/(?:tty\/(?:live-lines|run-activity)|search-lines)\.ts$/],
  },
  { name: "render", of: [/\/src\/render\/(?!tui\/|tty\/output\.ts)/] },
];
