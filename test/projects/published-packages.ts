/** Very popular packages, fetched with their registry's own client as configured on this machine. All must be quiet. */
export interface PublishedPackage {
  readonly name: string;
  /** Programs of the host that `get` needs. */
  readonly needs: readonly string[];
  /** A shell script that leaves one archive in its empty folder. */
  readonly get: string;
}

const npm = (name: string, version: string): PublishedPackage => ({
  name: `npm ${name} ${version}`,
  needs: ["npm"],
  get: `npm pack ${name}@${version} --silent`,
});

const pip = (name: string, version: string): PublishedPackage => ({
  name: `pip ${name} ${version}`,
  needs: ["python3"],
  get: `python3 -m pip download -q --disable-pip-version-check --no-binary :all: --no-deps ${name}==${version} -d .`,
});

const cargo = (name: string, version: string): PublishedPackage => ({
  name: `cargo ${name} ${version}`,
  needs: ["cargo"],
  get: `mkdir work && cd work && printf '[package]\\nname = "work"\\nversion = "0.1.0"\\n[lib]\\npath = "lib.rs"\\n[dependencies]\\n${name} = { version = "=${version}", default-features = false }\\n' > Cargo.toml && : > lib.rs
CARGO_HOME=$PWD/home cargo fetch -q && mv home/registry/cache/*/${name}-${version}.crate ../${name}-${version}.tar.gz && cd .. && rm -rf work`,
});

const go = (name: string, version: string): PublishedPackage => ({
  name: `go ${name} ${version}`,
  needs: ["go"],
  get: `GOMODCACHE=$PWD/mods GOFLAGS=-modcacherw go mod download ${name}@${version} && mv mods/cache/download/${name}/@v/${version}.zip module.zip && rm -rf mods`,
});

const maven = (group: string, name: string, version: string): PublishedPackage => ({
  name: `maven ${name} ${version}`,
  needs: ["mvn"],
  get: `mvn -q -B -Dmaven.repo.local=$PWD/repo dependency:get -Dtransitive=false -Dartifact=${group}:${name}:${version}:jar:sources
mv repo/${group.replaceAll(".", "/")}/${name}/${version}/${name}-${version}-sources.jar sources.zip && rm -rf repo`,
});

export const PUBLISHED_PACKAGES: readonly PublishedPackage[] = [
  npm("express", "4.19.2"),
  npm("lodash", "4.17.21"),
  npm("axios", "1.7.2"),
  npm("husky", "9.0.11"),
  npm("core-js", "3.37.1"),
  npm("commander", "12.1.0"),
  npm("chalk", "5.3.0"),
  npm("ws", "8.17.1"),
  npm("patch-package", "8.0.0"),
  npm("zod", "3.23.8"),
  pip("requests", "2.32.3"),
  pip("six", "1.16.0"),
  pip("click", "8.1.7"),
  pip("attrs", "23.2.0"),
  pip("idna", "3.7"),
  pip("MarkupSafe", "2.1.5"),
  pip("tomli", "2.0.1"),
  cargo("anyhow", "1.0.86"),
  cargo("libc", "0.2.155"),
  cargo("serde", "1.0.203"),
  cargo("thiserror-impl", "1.0.61"),
  cargo("serde_derive", "1.0.203"),
  go("golang.org/x/text", "v0.16.0"),
  go("github.com/spf13/cobra", "v1.8.1"),
  go("github.com/google/uuid", "v1.6.0"),
  maven("com.google.code.gson", "gson", "2.11.0"),
  maven("org.apache.commons", "commons-lang3", "3.14.0"),
];
