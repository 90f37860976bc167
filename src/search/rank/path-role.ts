import type { Role } from "../index-words.ts";

/** The first match counts: a test in a vendored folder is vendored, an example among tests is a test. */
const BY_PATH: readonly (readonly [Role, RegExp])[] = [
  [
    "vendored",
    /(^|\/)(vendor|vendored|node_modules|third[-_]?party|thirdparty|deps|extern|externals|bower_components|Godeps|_vendor)\/|[.-]min\.(js|css)$/i,
  ],
  [
    "test",
    /(^|\/)(tests?|specs?|__tests__|__mocks__|testdata|test[-_]?data|test[-_]?fixtures|fixtures?|e2e|integration|testutils?|[\w.-]*[-_.]tests?|tests?[-_][\w.-]+|src\/androidTest|snapshots|__snapshots__)\//i,
  ],
  [
    "test",
    /(^|[/_.-])(tests?|specs?)\.[A-Za-z]+$|(^|\/)(test_|tests?-|conftest\.|setup[-.]?tests?\.)[^/]*$|[a-z0-9](Tests?|Spec|TestCase)\.[A-Za-z]+$|\.(bats|snap)$|\.(test|spec|test-d|e2e|cy)\.[\w.]+$/,
  ],
  ["example", /(^|\/)(examples?|samples?|demos?|playgrounds?|benchmarks?|bench|benches|perf|tutorials?)\//i],
  [
    "docs",
    /(^|\/)(docs?|documentation|docs?[-_][\w-]+|guides|website|man)\/|\.(md|mdx|markdown|rst|adoc|asciidoc|rdoc|txt|tex|po|pot)$|(^|\/)(LICEN[CS]E|NOTICE|AUTHORS|CHANGELOG|CHANGES|HISTORY|README|CONTRIBUTING|COPYING|THANKS|TODO|NEWS)(\.|$|-)/i,
  ],
  ["docs", /(^|\/)(?!(?:BUILD|WORKSPACE)$)[A-Z]{2,}([-_][A-Z]+)*$/],
  [
    "config",
    /\.(json|jsonc|json5|ya?ml|toml|ini|cfg|conf|lock|xml|properties|csproj|sln|gradle|cmake|editorconfig|env|plist|mod|sum|gemspec|props|targets|iml|pem|crt|csv|tsv|svg)$|(^|\/)(\.[^/]+|Makefile|GNUmakefile|Dockerfile|Rakefile|Gemfile|CMakeLists\.txt|Jenkinsfile|Procfile|Vagrantfile|Justfile|justfile|Earthfile|Brewfile|gradlew|BUILD|WORKSPACE|meson\.build)$|(^|\/)(\.github|\.circleci|\.vscode|\.idea|\.devcontainer|\.gitlab)\/|\.config\.[cm]?[jt]s$/,
  ],
];

/** Extensions of source code. A file with another extension is data for some program. */
const CODE = new Set(
  (
    "ts mts cts tsx js mjs cjs jsx py pyi pyx go rs java c h cc cpp cxx hh hpp hxx inl ipp tpp cu cuh ino cs csx rb rake ru " +
    "php phtml inc sh bash zsh ksh fish bats vue svelte astro kt kts swift scala sc lua proto graphql gql html htm erb " +
    "haml slim hbs ejs twig liquid cshtml razor css scss sass less sql dart ex exs erl hrl hs ml mli clj cljs cljc fs fsx " +
    "pl pm r jl zig nim groovy ps1 psm1 m mm s asm tf hcl nix sol vim bat cmd tcl y l v sv vhd cr d pas f90 f lisp el scm " +
    "rkt elm purs res gleam odin coffee awk wgsl glsl hlsl metal applescript"
  ).split(" "),
);
const EXTENSION = /[^/]\.([^./]+)$/;

/** The role of a file by its path; its content may tell more. */
export function roleOf(path: string): Role {
  if (path.endsWith("CMakeLists.txt")) return "config";
  const known = BY_PATH.find(([, pattern]) => pattern.test(path))?.[0];
  if (known !== undefined) return known;
  const extension = EXTENSION.exec(path)?.[1]?.toLowerCase();
  return extension === undefined || CODE.has(extension) ? "source" : "config";
}
