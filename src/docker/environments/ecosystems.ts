import { fieldsIn } from "../../core/raw-data.ts";
import { denoNeeds, nodeNeeds } from "./node-project.ts";
import { type Folder, type Needs, type Reader, textIn, TOP, unpreset } from "./project-needs.ts";
import { pythonNeeds } from "./python-project.ts";
import type { Toolchain } from "./recipe.ts";

/** What files of each ecosystem say: what a project needs, and which version of a language it asks for. */

const go: Reader = (folder) => {
  const isWorkspace = folder.has("go.work");
  if (!isWorkspace && !folder.has("go.mod")) return undefined;
  const from = isWorkspace ? "go.work" : "go.mod";
  const base = { from, toolchain: "go" } as const;
  // Compiles, vets and links like the tests do, so that their first run in a box finds all of that done.
  const compile = isWorkspace
    ? "go list -f '{{.Dir}}/...' -m | xargs go test -run '^$'"
    : "go test -run '^$' ./...";
  if (folder.has("vendor/modules.txt")) return { ...base, from: "vendor/modules.txt", compile };
  const fetched = { ...base, registries: ["go"], steps: ["go mod download"], compile };
  // Without go.sum nothing is checked anyway, and what set-up would write into it is not kept.
  const isUnchecked = !isWorkspace && !folder.has("go.sum") && folder.has(TOP);
  return isUnchecked ? { ...fetched, env: { GOFLAGS: "-mod=mod" } } : fetched;
};

const rust: Reader = (folder) => {
  if (!folder.has("Cargo.toml")) return undefined;
  const locked = folder.has("Cargo.lock") ? " --locked" : "";
  return {
    from: locked === "" ? "Cargo.toml" : "Cargo.lock",
    toolchain: "rust",
    registries: ["cargo"],
    steps: [`cargo fetch${locked}`],
    compile: `cargo test --no-run --workspace${locked}`,
    folders: ["target"],
  };
};

const java: Reader = (folder) =>
  folder.has("pom.xml")
    ? mavenNeeds(
        folder.has("mvnw") && !folder.has(".mvn/wrapper/maven-wrapper.properties") ? "./mvnw" : "mvn",
      )
    : gradleNeeds(folder);

/**
 * Maven finds the tests' own runner only when it runs a test. In a project that does not compile, an empty class stands
 * in for its tests.
 */
function mavenNeeds(mvn: string): Needs {
  const tests = `${mvn} -B -ntp -Dmaven.compiler.failOnError=false -Dmaven.test.failure.ignore=true test`;
  const compile = `${mvn} -B -ntp -q test-compile`;
  const stand = `echo 'public class NoTest {}' >/tmp/NoTest.java; find . -path '*/target/test-classes' -exec javac -d {} /tmp/NoTest.java ';'`;
  return {
    from: "pom.xml",
    toolchain: "java",
    packages: ["maven"],
    registries: ["maven"],
    steps: [tests],
    compile: `${compile} >/dev/null || { ${stand}; ${tests} >/dev/null; ${compile}; }`,
  };
}

/** Resolves what every task may need, which compiling does not: the tests' runner, and whatever comes after an error. */
const RESOLVE =
  'allprojects { tasks.create("resolveAll") { doLast { configurations.findAll { it.canBeResolved }.each { def found = it.resolvedConfiguration; found.lenientConfiguration.artifacts*.file; if (it.name.endsWith("lasspath")) found.rethrowFailure() } } } }';

function gradleNeeds(folder: Folder): Needs | undefined {
  const build = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"].find((name) =>
    folder.has(name),
  );
  if (build === undefined) return undefined;
  const wrapper = folder.get("gradle/wrapper/gradle-wrapper.properties");
  const from = /^distributionUrl=https?\\?:\/\/([\w.-]+)/m.exec(wrapper ?? "")?.[1];
  const gradle = `${wrapper === undefined ? "gradle" : "sh ./gradlew"} --no-daemon`;
  return {
    from: build,
    toolchain: "java",
    registries: ["maven"],
    steps: [`echo '${RESOLVE}' >/tmp/resolve.gradle && ${gradle} -q -I /tmp/resolve.gradle resolveAll`],
    compile: `${gradle} testClasses`,
    ...(wrapper === undefined ? { packages: ["gradle"] } : {}),
    ...(from === undefined
      ? {}
      : {
          notTaken: [
            `the wrapper fetches gradle from ${from}, which no preset grants: --allow-domain ${from}`,
          ],
        }),
  };
}

/** Matches `"url": "https://…"`, also with the slashes escaped as PHP writes them. */
const COMPOSER_HOSTS = /"url":\s*"https?:(?:\\?\/){2}(?:[^"/\\@]*@)?([\w.-]+)(?=[:/"\\])/g;
const PACKAGIST_OFF = /"packagist(?:\.org)?"[ \t]*:[ \t]*false/;
const GEM_HOSTS =
  /^[ \t]*(?:remote:[ \t]*|source[ \t]*(?:\([ \t]*)?["'])https?:\/\/(?:[^\s"'/@]*@)?([\w.-]+)(?=[:/"'\s])/gm;

const php: Reader = (folder) =>
  folder.has("composer.json")
    ? {
        from: folder.has("composer.lock") ? "composer.lock" : "composer.json",
        toolchain: "php",
        packages: ["composer"],
        steps: ["composer install --no-interaction --no-progress --no-scripts --no-plugins"],
        folders: ["vendor"],
        notTaken: [
          unpreset(
            "composer",
            [folder.get("composer.json"), folder.get("composer.lock")],
            COMPOSER_HOSTS,
            PACKAGIST_OFF.test(folder.get("composer.json") ?? "")
              ? "HOST"
              : "repo packagist org".replaceAll(" ", "."),
          ),
        ],
      }
    : undefined;

const ruby: Reader = (folder) =>
  folder.has("Gemfile")
    ? {
        from: folder.has("Gemfile.lock") ? "Gemfile.lock" : "Gemfile",
        toolchain: "ruby",
        packages: ["bundler"],
        steps: [`${folder.has("Gemfile.lock") ? "BUNDLE_FROZEN=true " : ""}bundle install`],
        folders: ["vendor/bundle"],
        notTaken: [unpreset("bundler", [folder.get("Gemfile"), folder.get("Gemfile.lock")], GEM_HOSTS)],
      }
    : undefined;

/** The distribution's packages of usual libraries of C and C++, by the names that cmake and pkg-config know, in lower case. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  benchmark: ["libbenchmark-dev"],
  bzip2: ["libbz2-dev"],
  catch2: ["catch2"],
  check: ["check"],
  cmocka: ["libcmocka-dev"],
  curl: ["libcurl4-openssl-dev"],
  curses: ["libncurses-dev"],
  doctest: ["doctest-dev"],
  eigen3: ["libeigen3-dev"],
  expat: ["libexpat1-dev"],
  fmt: ["libfmt-dev"],
  "glib-2.0": ["libglib2.0-dev"],
  gmock: ["libgmock-dev"],
  gtest: ["libgtest-dev", "libgmock-dev"],
  jansson: ["libjansson-dev"],
  jpeg: ["libjpeg-dev"],
  libcrypto: ["libssl-dev"],
  libcurl: ["libcurl4-openssl-dev"],
  libffi: ["libffi-dev"],
  liblzma: ["liblzma-dev"],
  libpng: ["libpng-dev"],
  libpq: ["libpq-dev"],
  libssl: ["libssl-dev"],
  libuv: ["libuv1-dev"],
  "libxml-2.0": ["libxml2-dev"],
  libxml2: ["libxml2-dev"],
  liblz4: ["liblz4-dev"],
  libzstd: ["libzstd-dev"],
  ncurses: ["libncurses-dev"],
  nlohmann_json: ["nlohmann-json3-dev"],
  openssl: ["libssl-dev"],
  pcre2: ["libpcre2-dev"],
  "libpcre2-8": ["libpcre2-dev"],
  png: ["libpng-dev"],
  postgresql: ["libpq-dev"],
  protobuf: ["libprotobuf-dev", "protobuf-compiler"],
  readline: ["libreadline-dev"],
  spdlog: ["libspdlog-dev"],
  sqlite3: ["libsqlite3-dev"],
  "yaml-0.1": ["libyaml-dev"],
  "yaml-cpp": ["libyaml-cpp-dev"],
  zlib: ["zlib1g-dev"],
};

/** How cmake, meson and autoconf name what they look for; the lists of pkg-config may have versions between the names. */
const LOOKED_FOR: readonly RegExp[] = [
  /\bfind_package[ \t]*\([ \t]*([\w.+-]{1,60})/gi,
  /\bpkg_(?:check|search)_modules?[ \t]*\(([^()]{1,500})\)/gi,
  /\bdependency[ \t]*\([ \t]*'([\w.+-]{1,60})'/g,
  /\bPKG_CHECK_MODULES[ \t]*\(\[?\w{1,60}\]?,([^()]{1,500})\)/g,
];

/** Packages for the known libraries; of the text's own words, none gets into the result. */
function librariesOf(text: string): readonly string[] {
  const names = LOOKED_FOR.flatMap((form) =>
    Array.from(text.matchAll(form), ([, found = ""]) => found.toLowerCase().split(/[^\w.+-]+/)).flat(),
  );
  const known = names.flatMap((name) => (Object.hasOwn(LIBRARIES, name) ? (LIBRARIES[name] ?? []) : []));
  return [...new Set(known)].toSorted();
}

/** What cmake itself fetches, when it configures the build. */
const FETCHES = /^[ \t]*(?:FetchContent_Declare|ExternalProject_Add|CPMAddPackage)[ \t]*\(/im;
const HOSTS = /\bhttps:\/\/([a-z0-9](?:[a-z0-9.-]{0,100}[a-z0-9])?)\//gi;

/** Undefined if it fetches nothing. */
function fetchedSources(text: string): string | undefined {
  if (!FETCHES.test(text)) return undefined;
  const hosts = new Set(Array.from(text.matchAll(HOSTS), ([, host = ""]) => host.toLowerCase()));
  return `cmake fetches sources when it configures, and boxes have no network: let it find a package of the distribution instead (find_package), or grant a run the hosts: --allow-domain ${[...hosts].slice(0, 8).join(",") || "HOST"}`;
}

/** A build by packages of the distribution, with the libraries that it looks for, as far as they are known. */
const build =
  (from: string, packages: readonly string[]): Reader =>
  (folder) => {
    const text = folder.get(from);
    if (text === undefined) return undefined;
    const fetched = from === "CMakeLists.txt" ? fetchedSources(text) : undefined;
    return {
      from,
      packages: [...packages, ...librariesOf(text)],
      ...(fetched === undefined ? {} : { notTaken: [fetched] }),
    };
  };

export const ECOSYSTEMS: Readonly<Record<string, Reader>> = {
  node: nodeNeeds,
  deno: denoNeeds,
  python: pythonNeeds,
  go,
  rust,
  java,
  php,
  ruby,
  cmake: build("CMakeLists.txt", ["cmake", "g++", "pkg-config"]),
  meson: build("meson.build", ["meson", "ninja-build", "g++", "pkg-config"]),
  autotools: build("configure.ac", ["autoconf", "automake", "libtool", "pkg-config"]),
};

/** The version of a language that a project asks for. Digits only; null: the project says nothing binding. */

type VersionReader = (text: string) => readonly { readonly toolchain: Toolchain; readonly version: string }[];

const bareVersion =
  (toolchain: Toolchain): VersionReader =>
  (text) => {
    const version = numbersIn(firstLine(text));
    return version === null ? [] : [{ toolchain, version }];
  };

const ASDF: Readonly<Record<string, Toolchain>> = {
  nodejs: "node",
  node: "node",
  python: "python",
  golang: "go",
  go: "go",
  rust: "rust",
  java: "java",
  php: "php",
  ruby: "ruby",
};

/** `nodejs 20.11.1` on each line; of several versions the first counts. */
const toolVersions: VersionReader = (text) =>
  text.split("\n").flatMap((line) => {
    const [name = "", first = ""] = line.replace(/#.*/, "").trim().split(/\s+/);
    const [toolchain, version] = [ASDF[name], numbersIn(first)];
    return toolchain === undefined || version === null ? [] : [{ toolchain, version }];
  });

/** Its `go` line names the oldest version that works, not the one to build with: a newer one may be needed by tests. */
const goMod: VersionReader = (text) => {
  const version = numbersIn(/^toolchain\s+go(\d[\d.]*)/m.exec(text)?.[1] ?? "");
  return version === null ? [] : [{ toolchain: "go", version }];
};

/** The file is TOML, or the channel alone. */
const rustToolchain: VersionReader = (text) => {
  const channel = /^\s*channel\s*=\s*["']([^"']*)["']/m.exec(text)?.[1] ?? firstLine(text);
  const version = /^\d+\.\d+(?:\.\d+)?$/.test(channel) ? channel : null;
  return version === null ? [] : [{ toolchain: "rust", version }];
};

const pomXml: VersionReader = (text) => {
  const named =
    /<(?:maven\.compiler\.release|maven\.compiler\.target|java\.version|release)>\s*(?:1\.)?(\d+)\s*</.exec(
      text,
    )?.[1];
  return named === undefined ? [] : [{ toolchain: "java", version: named }];
};

/** An open range is no wish: any later version meets `>=18`. */
const packageJson: VersionReader = (text) => {
  const { volta, engines } = fieldsIn(text) as {
    readonly volta?: { readonly node?: unknown };
    readonly engines?: { readonly node?: unknown };
  };
  const pinned = numbersIn(textIn(volta?.node));
  const version = pinned ?? majorOfRange(textIn(engines?.node));
  return version === null ? [] : [{ toolchain: "node", version }];
};

/** In order of precedence. */
export const VERSION_FILES: Readonly<Record<string, VersionReader>> = {
  ".tool-versions": toolVersions,
  ".nvmrc": bareVersion("node"),
  ".node-version": bareVersion("node"),
  ".python-version": bareVersion("python"),
  ".go-version": bareVersion("go"),
  ".ruby-version": bareVersion("ruby"),
  ".java-version": bareVersion("java"),
  "rust-toolchain.toml": rustToolchain,
  "rust-toolchain": rustToolchain,
  "go.mod": goMod,
  "pom.xml": pomXml,
  "package.json": packageJson,
};

/** The numbers of `v20.11.1`, `ruby-3.2`, `go1.22`; null for names such as `lts/*` and `system`. */
export function numbersIn(text: string): string | null {
  return (
    /^(?:v|go|ruby-|python-|temurin-|openjdk-)?(\d{1,4}(?:\.\d{1,4}){0,2})/.exec(text.trim())?.[1] ?? null
  );
}

const firstLine = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .find((line) => line !== "") ?? "";

/** The highest major version in a range with an upper end; null for an open range. */
export function majorOfRange(range: string): string | null {
  const lines = range.split("||").map((part) => {
    const text = part.trim();
    const below = /<\s*(\d+)(?:\.0)*\s*$/.exec(text)?.[1];
    if (below !== undefined) return Number(below) - 1;
    const upTo = /<=?\s*(\d+)/.exec(text)?.[1];
    if (upTo !== undefined) return Number(upTo);
    if (text === "" || text === "*" || text.startsWith(">")) return Infinity;
    return Number(/^[\^~=v\s]*(\d+)/.exec(text)?.[1] ?? Infinity);
  });
  const highest = Math.max(...lines);
  return Number.isFinite(highest) && highest > 0 ? String(highest) : null;
}
