import { NPM_MANAGERS, PIP_MANAGERS, type Recipe, type TakenPaths } from "./recipe.ts";

/** One step of the system layer: a line for a root shell, and its title for people. */
export interface SystemStep {
  readonly title: string;
  readonly script: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute; made if missing. */
  readonly folder?: string;
  /** Files that are put into the container before the line runs. */
  readonly files?: NonNullable<Recipe["system"][number]["files"]>;
  /** Files of a stage that are put into the container before the line runs. */
  readonly from?: TakenPaths;
}

/** The distribution's packages that the layer added, as dpkg lists them. */
export const ADDED_PACKAGES = "/usr/local/share/harness/packages";

export interface SystemWishes {
  readonly recipe: Recipe;
  /** GOPROXY of the host's tools; empty if they do not say. */
  readonly goProxy: string;
  /** In the engine's terms: amd64, arm64. */
  readonly arch: string;
}

/**
 * Pure. The recipe's schema checked everything that is put into a line of ours: names and numbers only. A recipe's own
 * lines come last, unchanged.
 */
export function systemSteps(wishes: SystemWishes): readonly SystemStep[] {
  const { recipe } = wishes;
  const packages = packagesOf(recipe);
  return [
    ...(packages.length === 0
      ? []
      : [{ title: `packages: ${packages.join(" ")}`, script: APT.replace("PACKAGES", packages.join(" ")) }]),
    ...toolchainSteps(wishes),
    ...managerSteps(recipe),
    ...programSteps(recipe, wishes.arch),
    ...ownSteps(recipe),
  ];
}

/** The registries that the tools in a line ask, by the tools' names. */
const PRESET_TOOLS: readonly (readonly [preset: string, tools: RegExp])[] = [
  ["apt", /\b(?:apt|apt-get|aptitude)\b/],
  ["npm", /\b(?:npm|npx|yarn|pnpm|corepack)\b/],
  ["pip", /\b(?:pip3?|pipx|uvx?|poetry)\b/],
  ["cargo", /\bcargo\b/],
  ["go", /\bgo\s+(?:install|get|mod|build)\b/],
  ["maven", /\b(?:mvn|gradle)\b/],
];

export const registriesUsed = (lines: readonly { readonly run: string }[]): readonly string[] =>
  PRESET_TOOLS.filter(([, tools]) => lines.some(({ run }) => tools.test(run))).map(([preset]) => preset);

/** A recipe's own lines call the distribution's tools as they are: what these need in such a container is set up. */
const BEFORE = `mkdir -p /etc/apt/apt.conf.d /usr/sbin
echo 'APT::Sandbox::User "root";' > /etc/apt/apt.conf.d/00harness-layer
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
dpkg-query -W >/run/before 2>/dev/null || true`;
const AFTER = `mkdir -p $(dirname ADDED)
dpkg-query -W 2>/dev/null | grep -vxFf /run/before >>ADDED || true
rm -rf /run/before /etc/apt/apt.conf.d/00harness-layer /usr/sbin/policy-rc.d
find / -xdev -type f -perm /6000 -exec chmod a-s {} + || true`.replaceAll("ADDED", ADDED_PACKAGES);

const titleOf = (run: string): string =>
  run
    .replace(/^: '?(.*?)'?$/s, "$1")
    .replace(/\s+/g, " ")
    .slice(0, 200);

function ownSteps({ system }: Recipe): readonly SystemStep[] {
  if (system.length === 0) return [];
  return [
    { title: "before the recipe's own lines", script: BEFORE },
    // As in the build of an image: if one of several commands fails, the line goes on.
    ...system.map(({ run, folder, env, user, files, from }) => ({
      ...(files === undefined ? {} : { files }),
      ...(from === undefined ? {} : { from }),
      title: titleOf(run),
      script: user === undefined ? `set +eu\n${run}` : asUser(user, run, "HOME" in env),
      folder,
      env,
    })),
    { title: "behind the recipe's own lines", script: AFTER },
  ];
}

/**
 * Runs the line as that user of the image, by the rules of a Dockerfile's USER: a number need not be in /etc/passwd and
 * then has the group 0; a user's further groups apply if no group is named; HOME is the user's, unless it is set.
 */
const asUser = (user: string, run: string, hasHome: boolean): string => {
  const [name = "", group = ""] = user.split(":");
  return AS_USER.replace("USER_NAME", name)
    .replace("USER_GROUP", group)
    .replace("SET_HOME", hasHome ? ":" : "export HOME=$home")
    .replace("LINE", () => `'${run.replaceAll("'", String.raw`'\''`)}'`);
};

const AS_USER = `user=USER_NAME group=USER_GROUP name= uid= gid= home=/
while IFS=: read -r n _ i j _ h _; do
  if [ "$n" = "$user" ] || [ "$i" = "$user" ]; then name=$n uid=$i gid=$j home=$h; break; fi
done </etc/passwd
if [ -z "$uid" ]; then
  case $user in *[!0-9]*) echo "USER $user: there is no such user in the image's /etc/passwd" >&2; exit 125;; esac
  uid=$user gid=0
fi
if [ -n "$group" ]; then
  gid=
  while IFS=: read -r n _ j _; do
    if [ "$n" = "$group" ] || [ "$j" = "$group" ]; then gid=$j; break; fi
  done </etc/group
  if [ -z "$gid" ]; then
    case $group in *[!0-9]*) echo "USER $user:$group: there is no such group in the image's /etc/group" >&2; exit 125;; esac
    gid=$group
  fi
fi
groups=--clear-groups
if [ -n "$name" ] && [ -z "$group" ]; then groups=--init-groups; fi
SET_HOME
if ! setpriv --help 2>&1 | grep -q -e --reuid; then
  echo "USER $user: the image has no setpriv of util-linux, with which a line runs as another user than root" >&2; exit 125
fi
exec setpriv --reuid="$uid" --regid="$gid" "$groups" sh -c LINE`;

/** The registries that the layer itself is made from. */
export function systemRegistries({ recipe }: Pick<SystemWishes, "recipe">): readonly string[] {
  const { toolchains, managers } = recipe;
  const lineRegistries = new Set(registriesUsed(recipe.system));
  const wanted = {
    apt: packagesOf(recipe).length > 0,
    npm: typeof toolchains.node === "string" || NPM_MANAGERS.some((name) => managers[name] !== undefined),
    pip: PIP_MANAGERS.some((name) => managers[name] !== undefined),
    go: toolchains.go !== undefined,
  };
  const own = Object.entries(wanted).flatMap(([name, needed]) =>
    needed && !lineRegistries.has(name) ? [name] : [],
  );
  return [...own, ...lineRegistries];
}

/** An alternative `a|b` means the first one that the distribution has. */
function packagesOf({ packages, services, toolchains, managers }: Recipe): readonly string[] {
  const { rust, java } = toolchains;
  return [
    ...new Set([
      ...packages,
      ...services.flatMap((each) => each.packages),
      ...(rust === undefined ? [] : ["rustc-web|rustc", "cargo-web|cargo", "lld"]),
      ...(java === undefined
        ? []
        : [java === null ? "default-jdk-headless" : `openjdk-${java}-jdk-headless|default-jdk-headless`]),
      ...(PIP_MANAGERS.some((name) => managers[name] !== undefined) ? ["python3-venv"] : []),
    ]),
  ];
}

/** Nothing is started during the installation, and no file of a package keeps a set-id bit. */
const APT = `export DEBIAN_FRONTEND=noninteractive
mkdir -p /usr/share/man/man1 /var/lib/apt/lists/partial /var/cache/apt/archives/partial
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
apt_get() { apt-get -q -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@"; }
apt_get -o APT::Update::Error-Mode=any update
chosen=
for each in $(printf '%s ' 'PACKAGES'); do
  first=
  for name in $(printf %s "$each" | tr '|' ' '); do
    [ -n "$first" ] || first=$name
    if [ "$name" = "$each" ] || apt-cache show "\${name%%=*}" >/dev/null 2>&1; then first=$name; break; fi
  done
  chosen="$chosen $first"
done
dpkg-query -W >/run/before
apt_get -y --no-install-recommends install $chosen
mkdir -p $(dirname ADDED) && dpkg-query -W | grep -vxFf /run/before >>ADDED || true
rm -f /run/before
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /usr/sbin/policy-rc.d
find / -xdev -type f -perm /6000 -exec chmod a-s {} +`.replaceAll("ADDED", ADDED_PACKAGES);

/**
 * Rust from its own project brings a linker that is several times as fast as the distribution's, and a test run spends
 * most of its time linking. A project's own linker setting takes precedence over this file.
 */
const LINKER = `printf '#!/bin/sh\\nexec cc -fuse-ld=lld "$@"\\n' >/usr/local/bin/cc-lld
chmod 755 /usr/local/bin/cc-lld
mkdir -p /.cargo
printf '[target.x86_64-unknown-linux-gnu]\\nlinker = "/usr/local/bin/cc-lld"\\n' >/.cargo/config.toml`;

function toolchainSteps({ recipe: { toolchains }, goProxy, arch }: SystemWishes): readonly SystemStep[] {
  const { node, go, rust } = toolchains;
  return [
    ...(rust === undefined ? [] : [{ title: "rust's linker", script: LINKER }]),
    ...(typeof node === "string" ? [{ title: `node ${node}`, script: nodeScript(node, arch) }] : []),
    ...(go === undefined
      ? []
      : [
          {
            title: `go ${go ?? "(newest)"}`,
            script: GO,
            env: { WANTED: go ?? "", ARCH: arch, GIVEN: goProxy },
          },
        ]),
  ];
}

/** A current npm needs a current node; old ones get the npm that came with them. */
function nodeScript(version: string, arch: string): string {
  const name = `node-linux-${arch === "amd64" ? "x64" : arch}`;
  const old = Number(version.split(".")[0]) < 20;
  return `${old ? "npm install -g --ignore-scripts npm@10\n" : ""}npm install --prefix /opt/node --no-save --ignore-scripts ${name}@${version}
ln -sf /opt/node/node_modules/${name}/bin/node /usr/local/bin/node
rm -rf /usr/local/include/node && mkdir -p /usr/local/include
ln -s /opt/node/node_modules/${name}/include/node /usr/local/include/node
node --version
rm -rf /root/.npm`;
}

/** The module proxy has every release since 1.21 as a module; for an older one the newest is taken, as go does. */
const GO = `for proxy in $(printf %s "$GIVEN" | tr ',|' '  '); do
  case $proxy in http*) ;; *) continue ;; esac
  all=$(curl -fsSL "$proxy/golang.org/toolchain/@v/list" | sed -n "s/^v0\\.0\\.1-go\\([0-9.]*\\)\\.linux-$ARCH$/\\1/p" | sort -V)
  [ -n "$all" ] || continue
  line=$(printf %s "$WANTED" | cut -d. -f1,2)
  got=$(printf '%s\\n' "$all" | grep -Fx -- "$WANTED" || printf '%s\\n' "$all" | grep -E "^$line(\\.[0-9]+)?$" | tail -n 1)
  [ -n "$WANTED" ] && [ -n "$got" ] || got=$(printf '%s\\n' "$all" | tail -n 1)
  echo "go $got for \${WANTED:-any}"
  name=golang.org/toolchain@v0.0.1-go$got.linux-$ARCH
  curl -fsSL -o /opt/go.zip "$proxy/golang.org/toolchain/@v/v0.0.1-go$got.linux-$ARCH.zip"
  rm -rf /opt/unpacked && mkdir -p /opt/unpacked && unzip -q /opt/go.zip -d /opt/unpacked
  rm -rf /usr/local/go && mv "/opt/unpacked/$name" /usr/local/go && rm -rf /opt/unpacked /opt/go.zip
  chmod 755 /usr/local/go/bin/* /usr/local/go/pkg/tool/*/*
  ln -sf /usr/local/go/bin/go /usr/local/go/bin/gofmt /usr/local/bin/
  go version
  exit 0
done
echo "no module proxy is known here, so go comes from the distribution's packages"
${APT.replace("PACKAGES", "golang-go")}`;

/** Programs that are npm packages. The package of the usual name only has an install script, which is not run. */
const PROGRAMS = {
  bun: {
    packages: { amd64: "@oven/bun-linux-x64-baseline", arm64: "@oven/bun-linux-aarch64" },
    file: "bin/bun",
    links: ["bun", "bunx"],
  },
  deno: {
    packages: { amd64: "@deno/linux-x64-glibc", arm64: "@deno/linux-arm64-glibc" },
    file: "deno",
    links: ["deno"],
  },
} as const;

const programSteps = ({ managers }: Recipe, arch: string): readonly SystemStep[] =>
  Object.entries(PROGRAMS).flatMap(([name, { packages, file, links }]) => {
    const version = managers[name as keyof typeof PROGRAMS];
    if (version === undefined) return [];
    const program = packages[arch === "arm64" ? arch : "amd64"];
    const lines = [
      `npm install --prefix /opt/${name} --no-save --ignore-scripts ${program}@${version ?? "latest"}`,
      `chmod 755 /opt/${name}/node_modules/${program}/${file}`,
      ...links.map((link) => `ln -sf /opt/${name}/node_modules/${program}/${file} /usr/local/bin/${link}`),
      `${name} --version`,
      "rm -rf /root/.npm",
    ];
    return [{ title: `${name} ${version ?? "(newest)"}`, script: lines.join("\n") }];
  });

function managerSteps({ managers }: Recipe): readonly SystemStep[] {
  const npm = [
    ...(managers.pnpm === undefined ? [] : [`pnpm@${managers.pnpm ?? "latest"}`]),
    ...(managers.yarn === undefined ? [] : [yarnPackage(managers.yarn)]),
  ];
  return [
    ...(npm.length === 0
      ? []
      : [
          {
            title: npm.join(" "),
            script: `npm install -g --ignore-scripts ${npm.join(" ")}\nrm -rf /root/.npm`,
          },
        ]),
    ...PIP_MANAGERS.flatMap((name) => {
      const version = managers[name];
      if (version === undefined) return [];
      const spec = version === null ? name : `${name}==${version}`;
      // Releases of pdm do not run with hishel 2, but do not exclude it.
      const words = name === "pdm" ? `${spec} 'hishel<2'` : spec;
      const script = `python3 -m venv /opt/${name}\n/opt/${name}/bin/python -m pip install --quiet --no-cache-dir ${words}\nln -sf /opt/${name}/bin/${name} /usr/local/bin/${name}`;
      return [{ title: spec, script }];
    }),
  ];
}

const yarnPackage = (version: string | null): string =>
  version === null
    ? "yarn@1"
    : /^1(?:\.|$)/.test(version)
      ? `yarn@${version}`
      : `@yarnpkg/cli-dist@${version}`;

/**
 * Prints the installed versions, to report them beside the wanted ones; a missing tool prints nothing. Java would first
 * print the options from its environment, with numbers in them.
 */
export const VERSIONS_SCRIPT = `for each in 'node --version' 'python3 --version' 'go version' 'rustc --version' 'java -version' 'php --version' 'ruby --version'; do
  command -v "\${each%% *}" >/dev/null 2>&1 && printf '%s: %s\\n' "\${each%% *}" "$(unset JAVA_TOOL_OPTIONS; $each 2>&1 | head -n 1)"
done
true`;

/** The lines of VERSIONS_SCRIPT for the toolchains of a recipe, with the wanted version if it was not met. */
export function versionsGot(recipe: Recipe, output: string): readonly string[] {
  const programs = {
    node: "node",
    python: "python3",
    go: "go",
    rust: "rustc",
    java: "java",
    php: "php",
    ruby: "ruby",
  };
  return Object.entries(recipe.toolchains).map(([name, wanted]) => {
    const line = new RegExp(`^${programs[name as keyof typeof programs]}: (.*)$`, "m").exec(output)?.[1];
    const got = /\d+(?:\.\d+)*/.exec(line ?? "")?.[0];
    if (got === undefined) return `${name}: none could be installed`;
    const met = typeof wanted !== "string" || `${got}.`.startsWith(`${wanted}.`);
    return met ? `${name} ${got}` : `${name} ${got}, but ${wanted} is wanted`;
  });
}
