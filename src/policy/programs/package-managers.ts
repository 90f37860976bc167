import { fixedEffect } from "./argument-roles.ts";
import { CHECKERS } from "./javascript-programs.ts";
import { runsScript, SCRIPT, TESTS, tokens } from "./node-programs.ts";
import type { Found, Model, Use } from "./program-model.ts";
import { addresses, always, COMMAND, named, word } from "./project-arguments.ts";

const PNPM_OPTIONS = `-r -w -s -P -D -g -F: --recursive --workspace-root --silent --filter= --filter-prod= -C:in --dir=in --parallel
  --stream --aggregate-output --if-present --no-bail --bail --sort --no-sort --reverse --workspace-concurrency= --color
  --no-color --reporter= --loglevel= --offline --prefer-offline --json --long --parseable --depth= --prod --dev
  --no-optional --only-projects --fail-if-no-match --use-stderr --resume-from= --include-workspace-root --global
  --ignore-workspace --test-pattern= --changed-files-ignore-pattern= --script-shell=loads --global-dir=loads
  --ignore-pnpmfile --config=loads --pnpmfile=loads --node-options=loads`;
const pnpmTells: Model = { options: PNPM_OPTIONS, operands: "data*", fixed: ["settings"] };

const PNPM: Model = {
  options: PNPM_OPTIONS,
  tells: "--version -v --help -h",
  commands: {
    ...CHECKERS,
    ...named("list why root bin help licenses", pnpmTells),
    ...named("outdated audit view publish search ping whoami login logout", always("network")),
    ...named(
      `add install update remove link unlink import prune dedupe fetch env self-update setup patch patch-commit
       approve-builds deploy cat-file cat-index`,
      always("install"),
    ),
    ...named("dlx create install-test", always("install", "project")),
    ...named("rebuild pack", always("project")),
    ...named("start restart stop", SCRIPT),
    ...named("config set get init server", always("ask")),
    store: {
      options: PNPM_OPTIONS,
      commands: { path: pnpmTells, status: pnpmTells, prune: always("install") },
    },
    exec: { options: PNPM_OPTIONS, commands: CHECKERS, otherwise: COMMAND },
    run: { options: PNPM_OPTIONS, strict: true, operands: "data*", also: runsScript },
    test: TESTS,
  },
  aliases: {
    ...aliases("list", "ls la ll"),
    ...aliases("install", "i"),
    ...aliases("update", "up upgrade"),
    ...aliases("remove", "rm un uninstall"),
    ...aliases("test", "t tst"),
    ...aliases("run", "run-script"),
    ...aliases("rebuild", "rb"),
    ...aliases("link", "ln"),
    ...aliases("install-test", "it"),
  },
  otherwise: SCRIPT,
};

const YARN_OPTIONS = `-s -W -A -p -v -i -t --silent --cwd=in --json --verbose --no-progress --offline --non-interactive --depth=
  --pattern= --recursive --all --parallel --interlaced --topological --topological-dev --include= --exclude= --since=?
  --from= --jobs= -j: --no-private --production --prod --use-yarnrc=loads --script-shell=loads --mutex=loads`;
const yarnTells: Model = { options: YARN_OPTIONS, operands: "data*", fixed: ["settings"] };
const yarnRun: Model = { options: YARN_OPTIONS, strict: true, operands: "data*", also: yarnScript };

const YARN: Model = {
  options: YARN_OPTIONS,
  tells: "--version -v --help -h",
  fixed: ["install"],
  commands: {
    ...CHECKERS,
    ...named("list why bin help versions licenses explain", yarnTells),
    ...named("outdated audit npm info login logout owner publish tag team search", always("network")),
    ...named(
      `install add remove up upgrade upgrade-interactive link unlink import plugin set dedupe patch patch-commit
       global cache autoclean policies unplug`,
      always("install"),
    ),
    ...named("dlx create", always("install", "project")),
    ...named("rebuild pack exec node constraints", always("project")),
    start: SCRIPT,
    ...named("init version stage", always("ask")),
    config: {
      options: YARN_OPTIONS,
      commands: {
        list: yarnTells,
        get: { ...yarnTells, also: tokens },
        ...named("set delete unset", always("ask")),
      },
    },
    run: yarnRun,
    test: TESTS,
    workspace: { options: YARN_OPTIONS, strict: true, operands: "data*", also: yarnInWorkspace },
    workspaces: {
      options: YARN_OPTIONS,
      commands: {
        ...named("info list", yarnTells),
        run: yarnRun,
        foreach: { options: YARN_OPTIONS, strict: true, operands: "data*", also: yarnAgain },
        focus: always("install"),
      },
    },
  },
  otherwise: SCRIPT,
};

/** A script, and where there is none of that name, a program of the packages. */
function yarnScript(use: Use): readonly Found[] {
  const [name] = use.operands;
  const checks = name?.kind === "literal" && Object.hasOwn(CHECKERS, name.value);
  return checks ? [fixedEffect("check", use.folder, use.program), ...yarnAgain(use)] : runsScript(use);
}

/** `yarn workspace name …`: the rest is a command of yarn again. */
function yarnInWorkspace(use: Use): readonly Found[] {
  const [workspace, ...rest] = use.operands;
  return workspace === undefined ? [] : use.command([word("yarn", workspace), ...rest]);
}

function yarnAgain(use: Use): readonly Found[] {
  const [first] = use.operands;
  return first === undefined ? [] : use.command([word("yarn", first), ...use.operands]);
}

function aliases(of: string, names: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, of]));
}

export const PACKAGE_MANAGERS: Readonly<Record<string, Model>> = {
  pnpm: PNPM,
  yarn: YARN,
  ...named("yarnpkg", YARN),
  ...named("corepack nvm volta fnm n asdf mise rtx", always("install")),
};

const TELLS = "--version -v -V --help -h version help";
const installs: Model = { ...always("install"), tells: TELLS };

/** What is installed, told from the files of the system. */
const local = (options = ""): Model => ({ options, operands: "data*" });
const APT_OPTIONS =
  "-q -a -n -i --quiet --installed --upgradable --manual-installed --all-versions -o:loads -c:loads --names-only --no-all-versions -f --full";

const apt: Model = {
  options:
    "-q -y --quiet --yes -o:loads -c:loads --option=loads --config-file=loads -d -s --assume-yes --no-install-recommends",
  tells: TELLS,
  commands: {
    ...named(
      "list show showsrc search policy madison depends rdepends showpkg pkgnames stats dump unmet",
      local(APT_OPTIONS),
    ),
    ...named(
      `install remove purge update upgrade full-upgrade dist-upgrade dselect-upgrade autoremove autopurge reinstall build-dep clean autoclean
       edit-sources source download changelog satisfy check`,
      always("install"),
    ),
  },
};

const DPKG: Model = {
  options: `-l -s -L -S -p -C -V -c:read -I:read -f:read --list --status --listfiles --search --print-avail --audit --verify=? --get-selections --print-architecture
    --print-foreign-architectures --compare-versions --contents=read --info=read --no-pager -i!install -r!install -P!install --install!install
    --remove!install --purge!install --unpack!install --configure!install -a!install --set-selections!install --clear-selections!install
    --force-all!install --admindir=loads --root=loads --instdir=loads --add-architecture=!install -x:loads --extract=loads -b:loads --pre-invoke=loads --post-invoke=loads --log=write`,
  operands: "data*",
  tells: TELLS,
};

/** With `-p` and `-f` its operands are files. */
const packageFiles = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => name === "-p" || name === "-f" || name === "--file")
    ? use.operands.map((arg) => ({ kind: "read", path: use.place(arg), span: arg.span }))
    : [];

const RPM: Model = {
  options: `-q -a -i!ask -l -f -p -R -V -c -d --query --queryformat= --qf= --all --info --list --file --requires --provides --changelog --scripts --verify -v
    -U!install -F!install -e!install --install!install --upgrade!install --erase!install --import!install --root=loads -E:code --eval=code --define=loads
    --load=loads --pipe=shell --dbpath=loads --rebuilddb!system --initdb!system`,
  operands: "data*",
  tells: TELLS,
  also: (use) => [...addresses(use), ...packageFiles(use)],
};

const dnf: Model = {
  options: "-q -y -v --quiet --assumeyes -C --cacheonly --setopt=loads -c:loads --installroot=loads",
  tells: TELLS,
  commands: {
    ...named(
      "list info search provides whatprovides repoquery repolist check-update deplist history",
      always("network"),
    ),
    ...named(
      "install remove erase update upgrade downgrade reinstall autoremove clean makecache module group swap distro-sync localinstall",
      always("install"),
    ),
  },
};

const APK: Model = {
  options: "-q -v --quiet --verbose --no-network -X:loads --repository=loads -p:loads --root=loads",
  tells: TELLS,
  commands: {
    ...named(
      "info list policy",
      local("-e -a -v -d -w -L -R -r -I --installed --all --contents --depends --upgradable"),
    ),
    ...named("search stats audit verify dot version", always("network")),
    ...named("add del update upgrade fix cache fetch manifest", always("install")),
  },
};

const BREW: Model = {
  options: "-q -v -d --quiet --verbose --debug",
  tells: `${TELLS} --prefix --cellar --repository --caskroom`,
  commands: {
    ...named(
      "list ls leaves config deps uses --prefix --cellar",
      local("--versions --formula --cask -1 -l --tree --installed --full-name --json=?"),
    ),
    ...named("search info outdated home doctor livecheck audit", always("network")),
    ...named(
      "install uninstall remove rm upgrade update reinstall link unlink tap untap cleanup autoremove pin unpin bundle services fetch switch",
      always("install"),
    ),
  },
};

export const SYSTEM_PACKAGES: Readonly<Record<string, Model>> = {
  ...named("apt apt-get", apt),
  "apt-cache": { ...apt, options: APT_OPTIONS },
  "apt-mark": {
    options: "",
    tells: TELLS,
    commands: {
      ...named("showauto showmanual showhold", local()),
      ...named("auto manual hold unhold minimize-manual", always("install")),
    },
  },
  ...named("aptitude apt-key add-apt-repository apt-file dselect", installs),
  dpkg: DPKG,
  "dpkg-query": {
    options:
      "-W -l -s -L -S -f: --show --list --status --listfiles --search --showformat= --no-pager --admindir=loads --load-avail",
    operands: "data*",
    tells: TELLS,
  },
  rpm: RPM,
  ...named("dnf yum microdnf tdnf", dnf),
  apk: APK,
  ...named(
    "pacman yay paru zypper emerge xbps-install xbps-query opkg pkg pkg_add port guix slackpkg eopkg swupd",
    installs,
  ),
  brew: BREW,
  ...named("snap flatpak choco scoop winget", installs),
  ...named("nix nix-env nix-shell nix-build nix-store nix-channel nixos-rebuild home-manager devbox", {
    ...always("install", "project"),
    tells: TELLS,
  }),
};
