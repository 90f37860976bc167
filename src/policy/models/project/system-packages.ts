import type { Found, Model, Use } from "../model.ts";
import { addresses, always, named } from "./parts.ts";

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
