/**
 * Others' projects as published in their registries, with their tests. Each is fetched with the registry's own client
 * as configured on this machine; a row without its client is reported and left out.
 */
export interface PublishedProject {
  readonly name: string;
  readonly ecosystem: string;
  /** Programs of the host that `get` needs. */
  readonly needs: readonly string[];
  /** A shell script that leaves the project in its empty folder, as a clone of it would be. */
  readonly get: string;
  /** What a developer types once on the host before the tests; in the box `harness env build` replaces it. */
  readonly onHost: string;
  /** The test command in the project's folder, the same on the host and in the box. */
  readonly test: string;
  /** The number of passed tests according to the output. */
  readonly passed: (output: string) => number;
  /** A recipe for the project if its files say too little; passed with `--env`. */
  readonly recipe?: Readonly<Record<string, unknown>>;
}

/** The sum of all matches' first groups. */
const sumOf =
  (form: RegExp) =>
  (output: string): number =>
    [...output.matchAll(form)].reduce((sum, [, count]) => sum + Number(count), 0);

const countOf =
  (form: RegExp) =>
  (output: string): number =>
    [...output.matchAll(form)].length;

const unpacked = (file: string): string =>
  `tar -xf ${file} --strip-components=1 --no-same-owner && rm -f ${file}`;

function npm(name: string, version: string, test: string): PublishedProject {
  return {
    name,
    ecosystem: "npm",
    needs: ["npm"],
    get: `npm pack ${name}@${version} --silent >/dev/null && ${unpacked(`${name}-${version}.tgz`)}
npm install --package-lock-only --ignore-scripts --no-audit --no-fund --silent`,
    onHost: "npm ci --ignore-scripts --no-audit --no-fund --silent",
    test,
    passed: sumOf(/^# pass\s+(\d+)/gm),
  };
}

function pip(
  name: string,
  version: string,
  requirements: string,
  recipe?: PublishedProject["recipe"],
): PublishedProject {
  return {
    name,
    ecosystem: "pip",
    needs: ["python3"],
    get: `python3 -m pip download -q --disable-pip-version-check --no-binary :all: --no-deps ${name}==${version} -d .
${unpacked(`${name}-${version}.tar.gz`)}`,
    onHost: `python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check -e . ${requirements}`,
    test: ".venv/bin/python -m pytest -q -p no:cacheprovider tests",
    passed: sumOf(/(\d+) passed/g),
    ...(recipe === undefined ? {} : { recipe }),
  };
}

function crate(name: string, version: string): PublishedProject {
  return {
    name,
    ecosystem: "cargo",
    needs: ["cargo"],
    get: `mkdir -p .get/src && cd .get && touch src/lib.rs
printf '[package]\\nname = "get"\\nversion = "0.0.0"\\nedition = "2021"\\n[dependencies]\\n${name} = "=${version}"\\n' >Cargo.toml
cargo vendor -q >/dev/null && cp -r vendor/${name}/. .. && cd .. && rm -rf .get .cargo-checksum.json
cp Cargo.toml.orig Cargo.toml && cargo generate-lockfile -q`,
    onHost: "cargo fetch -q --locked && cargo test -q --offline --no-run",
    test: "cargo test -q --offline",
    passed: sumOf(/test result: \w+\. (\d+) passed/g),
  };
}

function goModule(name: string, version: string): PublishedProject {
  return {
    name,
    ecosystem: "go",
    needs: ["go"],
    get: `folder=$(cd / && go mod download -json ${name}@${version} | sed -n 's/.*"Dir": "\\(.*\\)".*/\\1/p')
cp -r "$folder/." . && chmod -R u+w .`,
    onHost: "go mod download && go vet ./... >/dev/null 2>&1 || true",
    test: "go test -count=1 -v ./...",
    passed: countOf(/^--- PASS/gm),
  };
}

function maven(group: string, name: string, version: string): PublishedProject {
  const copied = (what: string): string =>
    `mvn -B -q dependency:copy -Dartifact=${group}:${name}:${version}:${what} -DoutputDirectory=.get`;
  return {
    name,
    ecosystem: "maven",
    needs: ["mvn", "unzip"],
    get: `${copied("jar:sources")} && ${copied("jar:test-sources")} && ${copied("pom")}
mkdir -p src/main/java src/test/java && mv .get/*.pom pom.xml
unzip -qo .get/${name}-${version}-sources.jar -d src/main/java
unzip -qo .get/${name}-${version}-test-sources.jar -d src/test/java
rm -rf .get src/main/java/META-INF src/test/java/META-INF`,
    onHost: "mvn -B -q -Dmaven.test.failure.ignore test >/dev/null",
    test: "mvn -B -o -Drat.skip -Dmaven.test.failure.ignore test",
    passed: (output) => {
      const [, ran, failures, errors, skipped] =
        /^.*Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$/m
          .exec(output)
          ?.map(Number) ?? [];
      return (ran ?? 0) - (failures ?? 0) - (errors ?? 0) - (skipped ?? 0);
    },
  };
}

interface Debian {
  readonly name: string;
  readonly ecosystem: string;
  readonly packages: readonly string[];
  readonly build: string;
  readonly test: string;
  readonly passed: PublishedProject["passed"];
}

/**
 * Upstream's own archive from the distribution's source package; the host's package sources are asked for sources, too.
 */
function debian({ name, ecosystem, packages, build, test, passed }: Debian): PublishedProject {
  return {
    name,
    ecosystem,
    needs: ["apt-get", "cc"],
    get: `mkdir -p .get/lists/partial .get/cache/archives/partial
cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types: deb$/Types: deb-src/' >.get/all.sources
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >.get/all.list 2>/dev/null || true
list=all.sources; test -s .get/all.sources || list=all.list
options="-qq -o Dir::Etc::sourcelist=$PWD/.get/$list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/.get/lists -o Dir::Cache=$PWD/.get/cache -o APT::Sandbox::User=$(id -un)"
apt-get $options update && (cd .get && apt-get $options source --download-only ${name})
tar -xf .get/${name}_*.orig.tar.* --strip-components=1 --no-same-owner && rm -rf .get`,
    onHost: build,
    test: `${build} >/dev/null 2>&1; ${test}`,
    passed,
    recipe: { packages },
  };
}

const CMAKE = "cmake -S . -B build && cmake --build build";
const CTEST = "ctest --test-dir build --output-on-failure";
const ctestPassed = (output: string): number => {
  const [, failed, all] = /(\d+) tests failed out of (\d+)/.exec(output) ?? [];
  return Number(all ?? 0) - Number(failed ?? 0);
};

export const PUBLISHED_PROJECTS: readonly PublishedProject[] = [
  npm("minimist", "1.2.8", "npx --no-install tape 'test/**/*.js'"),
  npm("object-inspect", "1.13.2", "npx --no-install tape 'test/*.js'"),
  pip("requests", "2.32.3", "-r requirements-dev.txt"),
  pip("itsdangerous", "2.2.0", "-r requirements/tests.txt", {
    packages: ["python3-venv"],
    registries: ["pip"],
    toolchains: { python: null },
    setup: [{ run: "python3 -m venv .venv && .venv/bin/pip install -q -e . -r requirements/tests.txt" }],
    folders: [".venv"],
  }),
  crate("semver", "1.0.23"),
  crate("smallvec", "1.13.2"),
  goModule("github.com/google/uuid", "v1.6.0"),
  goModule("github.com/spf13/cobra", "v1.8.1"),
  goModule("github.com/gorilla/mux", "v1.8.1"),
  maven("commons-cli", "commons-cli", "1.9.0"),
  debian({
    name: "cjson",
    ecosystem: "cmake (C)",
    packages: ["cmake", "g++"],
    build: CMAKE,
    test: CTEST,
    passed: ctestPassed,
  }),
  debian({
    name: "tinyxml2",
    ecosystem: "cmake (C++)",
    packages: ["cmake", "g++"],
    build: CMAKE,
    test: "build/xmltest",
    passed: sumOf(/Pass (\d+)/g),
  }),
  debian({
    name: "zlib",
    ecosystem: "configure, make",
    packages: [],
    build: "./configure && make -s",
    test: "make -s check",
    passed: countOf(/test OK/g),
  }),
];
