import type { Tier } from "../core/handoff.ts";
import { fold } from "../core/protected-names.ts";

/**
 * Beside `core/protected-names.ts`: names that something on the host runs or obeys. dangerous: by itself, or at an act
 * that is not meant to run anything (open, enter, commit). look: when somebody builds, tests, installs or pushes.
 * `*` stands for any text, once; a name that ends in `/` is a folder with all that is in it.
 */
const DANGEROUS: Readonly<Record<string, string>> = {
  "git runs them at the next commit, where their hook is installed":
    ".pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml lefthook.toml .lefthook.yml .lefthook.yaml .lefthook/ .overcommit.yml .simple-git-hooks.js .simple-git-hooks.cjs .simple-git-hooks.json simple-git-hooks.json",
  "an editor or a debugger runs it when it opens the folder":
    ".vimrc .exrc .nvimrc .nvim.lua .gvimrc .lvimrc .dir-locals.el .dir-locals-2.el .gdbinit .lldbinit .vim/ .nvim/ .sublime-project *.sublime-project .vs/ .settings/ .replit",
  "a shell runs it on entering the folder": ".env.zsh .autoenv.zsh .autoenv_leave.zsh .in .out .ondir",
};

const LOOK: Readonly<Record<string, string>> = {
  "coding agents follow it":
    "agents.md agents.override.md claude.md claude.local.md gemini.md .cursorrules .windsurfrules .clinerules .clinerules/ .roo/ .kiro/ .continue/ .goosehints copilot-instructions.md .qwen/ .amp/ .crush.json crush.json",
  "the forge runs it, with its secrets, once it is pushed":
    "workflows/ .gitlab-ci.yml .gitlab/ .circleci/ .travis.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines/ .drone.yml .woodpecker.yml .woodpecker/ bitbucket-pipelines.yml .buildkite/ appveyor.yml .appveyor.yml jenkinsfile cloudbuild.yaml action.yml action.yaml dependabot.yml renovate.json .sourcehut/ .builds/ .forgejo/ .gitea/",
  "a lock file: what the next installation fetches and runs":
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock poetry.lock uv.lock pdm.lock pipfile.lock requirements*.txt constraints*.txt gemfile.lock composer.lock go.sum mix.lock package.resolved flake.lock gradle.lockfile packages.lock.json podfile.lock pubspec.lock conda-lock.yml",
  "a package manager obeys it: registries, scripts, plugins":
    ".npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.cjs pnpm-workspace.yaml .pnp.cjs .pnp.loader.mjs bunfig.toml .bunfig.toml pip.conf .condarc environment.yml environment.yaml pipfile gemfile .bundle/ composer.json nuget.config podfile pubspec.yaml .terraformrc",
  "a build runs it":
    "makefile gnumakefile bsdmakefile makefile.* *.mk justfile .justfile taskfile.yml taskfile.yaml rakefile *.rake cmakelists.txt *.cmake cmakepresets.json meson.build configure configure.ac build.ninja build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradlew gradlew.bat gradle.properties gradle-wrapper.properties gradle-wrapper.jar pom.xml mvnw mvnw.cmd .mvn/ build.xml build.sbt *.sbt build.rs cargo.toml .cargo/ rust-toolchain rust-toolchain.toml go.mod go.work build build.bazel workspace workspace.bazel module.bazel *.bzl .bazelrc .bazelversion buck .buckconfig sconstruct wscript build.zig build.zig.zon mix.exs package.swift dune-project *.gemspec *.csproj *.vcxproj *.props *.targets directory.build.* global.json deno.json deno.jsonc nx.json turbo.json lerna.json project.clj deps.edn shard.yml stack.yaml *.cabal",
  "Python loads it by itself at the next run, build or test":
    "conftest.py sitecustomize.py usercustomize.py *.pth setup.py setup.cfg pyproject.toml tox.ini noxfile.py pytest.ini manage.py",
  "a tool loads it as code":
    "*.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts .eslintrc.js .eslintrc.cjs .prettierrc.js .prettierrc.cjs .babelrc .babelrc.js gruntfile.js gulpfile.js .mocharc.js .mocharc.cjs .lintstagedrc.js .releaserc.js .swcrc dangerfile dangerfile.js dangerfile.ts .rspec .irbrc .pryrc .rprofile .iex.exs .ghci .ocamlinit .terraform/ *.user.js",
  "an image or a machine is made of it":
    "dockerfile dockerfile.* *.dockerfile containerfile containerfile.* .dockerignore docker-compose*.yml docker-compose*.yaml compose*.yml compose*.yaml docker-bake.hcl vagrantfile procfile tiltfile skaffold.yaml earthfile default.nix shell.nix flake.nix devbox.json devenv.nix .gitpod.yml .gitpod.dockerfile serverless.yml",
  "programs take settings, and what they run, from it": ".env .env.* .envrc.* .tool-versions .sdkmanrc",
  "git obeys it, as far as its configuration names the filters": ".gitattributes",
};

interface Known {
  readonly tier: Tier;
  readonly reason: string;
  readonly folder: boolean;
}

interface Pattern {
  readonly head: string;
  readonly tail: string;
  readonly known: Known;
}

const [EXACT, PATTERNS] = tables();

function tables(): readonly [ReadonlyMap<string, Known>, readonly Pattern[]] {
  const exact = new Map<string, Known>();
  const patterns: Pattern[] = [];
  for (const [tier, rows] of [["look", LOOK] as const, ["dangerous", DANGEROUS] as const])
    for (const [reason, names] of Object.entries(rows))
      for (const name of names.split(" ")) {
        const known = { tier, reason, folder: name.endsWith("/") };
        const plain = name.replace(/\/$/, "");
        const star = plain.indexOf("*");
        if (star === -1) exact.set(plain, known);
        else patterns.push({ head: plain.slice(0, star), tail: plain.slice(star + 1), known });
      }
  return [exact, patterns];
}

/** What the tables say of one name of a path. */
export function knownName(name: string): Known | undefined {
  const folded = fold(name);
  return (
    EXACT.get(folded) ??
    PATTERNS.find(
      ({ head, tail }) =>
        folded.length >= head.length + tail.length && folded.startsWith(head) && folded.endsWith(tail),
    )?.known
  );
}

/** What of a `package.json` is run or decides what is run. */
const PARTS = [
  "scripts",
  "bin",
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "bundleDependencies",
  "overrides",
  "resolutions",
  "workspaces",
  "packageManager",
  "husky",
  "lint-staged",
  "simple-git-hooks",
  "pre-commit",
  "gypfile",
  "pnpm",
  "allowScripts",
  "trustedDependencies",
];

/** Why a changed `package.json` matters to the host; undefined when nothing of that has changed. */
export function packageReason(before: string | undefined, after: string | undefined): string | undefined {
  const [old, now] = [read(before ?? "{}"), read(after ?? "{}")];
  if (old === undefined || now === undefined) return "npm runs its scripts, and what it depends on";
  const parts = PARTS.filter((part) => JSON.stringify(old[part]) !== JSON.stringify(now[part]));
  if (parts.length === 0) return undefined;
  const scripts = changedNames(old["scripts"], now["scripts"]);
  const others = parts.filter((part) => part !== "scripts");
  return [
    ...(scripts.length === 0 ? [] : [`npm runs its scripts; changed: ${scripts.join(", ")}`]),
    ...(others.length === 0 ? [] : [`changed: ${others.join(", ")}`]),
  ].join("; ");
}

type Fields = Readonly<Record<string, unknown>>;

function read(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function changedNames(before: unknown, after: unknown): readonly string[] {
  const [old, now] = [isFields(before) ? before : {}, isFields(after) ? after : {}];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .toSorted();
}
