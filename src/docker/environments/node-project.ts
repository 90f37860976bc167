import { fieldsIn, fieldsOf } from "../../core/raw-data.ts";
import { firstOf } from "../../core/wording.ts";
import { type Folder, type Needs, ownRecipe, type Reader, textIn, TOP, unpreset } from "./project-needs.ts";

/** What a project of npm, pnpm, yarn, bun or deno needs: by its lock file, or by the manager that it names. */

/** Scripts of packages are not run: they are the usual way in for a bad release, and few packages need them. */
const NPM_CI = "npm ci --ignore-scripts";
const NPM_INSTALL = "npm install --no-package-lock --ignore-scripts";

export const nodeNeeds: Reader = (folder) => {
  const text = folder.get("package.json");
  const lock = NODE_LOCKS.find((name) => folder.has(name));
  if (text === undefined || (lock === undefined && isDeno(folder))) return undefined;
  const manifest = fieldsIn(text);
  const from = lock ?? "package.json";
  const wanted = installOf(manifest, lock, folder);
  const isAddon = folder.has("binding.gyp");
  if (wanted === undefined && !isAddon)
    return folder.has(TOP) ? { from: "package.json", toolchain: "node" } : undefined;
  return {
    from,
    toolchain: "node",
    registries: ["npm"],
    folders: ["node_modules"],
    packages: isAddon ? ["g++"] : [],
    ...wanted,
    notTaken: [
      ...(isAddon ? [UNCOMPILED] : []),
      ...ownScripts(fieldsOf(manifest["scripts"])),
      ...(from.endsWith(".json") ? packageScripts(folder.get(from) ?? "") : []),
    ],
  };
};

function installOf(
  manifest: Readonly<Record<string, unknown>>,
  lock: string | undefined,
  folder: Folder,
): ReturnType<Install> | undefined {
  const [, manager = "", version = null] = PINNED.exec(textIn(manifest["packageManager"])) ?? [];
  const install = INSTALLS[lock ?? manager];
  if (install === undefined) return hasDependencies(manifest) ? { steps: [NPM_INSTALL] } : undefined;
  return install(version, lock === undefined ? undefined : folder.get(lock));
}

/** The set-up cannot keep what is compiled: node-gyp removes its folder `build`, which a volume would prevent. */
const UNCOMPILED =
  "the addon is not compiled by the set-up: harness sandbox exec -- npm exec -c 'node-gyp rebuild'";

/** The scripts that an installation runs in the project itself. */
const OWN_SCRIPTS = ["preinstall", "install", "postinstall", "prepare"];
/** They only set up hooks of git, or check which manager runs. */
const NEEDLESS =
  /^(?:\W*\w*\W*\s*)?(?:husky|lefthook|simple-git-hooks|npx (?:only-allow|husky)|is-ci|node-gyp)\b/;
const SHOWN_SCRIPT = 120;

function ownScripts(scripts: Readonly<Record<string, unknown>>): readonly string[] {
  return OWN_SCRIPTS.flatMap((name) => {
    const script = textIn(scripts[name]).trim();
    if (script === "" || NEEDLESS.test(script)) return [];
    const shown = script.length > SHOWN_SCRIPT ? `${script.slice(0, SHOWN_SCRIPT)}…` : script;
    return [
      `the project's ${name} script is not run (${shown}); if its tests need it, ${ownRecipe("COMMAND")}`,
    ];
  });
}

const MAX_NAMED = 5;

/** The packages whose install scripts a lock file of npm names; those of optional packages are for other systems. */
function packageScripts(lock: string): readonly string[] {
  const found = new Set<string>();
  let name = "";
  for (const [, key, mark] of lock.matchAll(
    /^[ \t]*"(?:[^"\n]*node_modules\/([^"\n]+)": \{|(hasInstallScript|optional)": true)/gm,
  )) {
    if (key !== undefined) name = key;
    else if (mark === "optional") found.delete(name);
    else if (name !== "") found.add(name);
  }
  if (found.size === 0) return [];
  const names = [...found].toSorted();
  const plain = names.filter((each) => PACKAGE.test(each)).slice(0, MAX_NAMED);
  const recipe = ownRecipe(`npm rebuild ${plain.length === 0 ? "NAME" : plain.join(" ")}`, "g++");
  return [
    `install scripts of packages are not run: ${firstOf(names, MAX_NAMED, (each) => each)}. If the tests need one, ${recipe}`,
  ];
}

const PACKAGE = /^(?:@[\w.-]{1,100}\/)?[\w][\w.-]{0,100}$/;

const PINNED = /^(pnpm|yarn|bun)@(\d+\.\d+\.\d+)/;
export const NODE_LOCKS = [
  "package-lock.json",
  "npm-shrinkwrap.json",
  "pnpm-lock.yaml",
  "yarn.lock",
  "bun.lock",
  "bun.lockb",
];

type Install = (version: string | null, lock: string | undefined) => Pick<Needs, "managers" | "steps">;

const bun: Install = (version, lock) => ({
  managers: { bun: version },
  steps: [`bun install${lock === undefined ? "" : " --frozen-lockfile"} --ignore-scripts`],
});

const pnpm: Install = (version, lock) => ({
  managers: { pnpm: version },
  steps: [`pnpm install${lock === undefined ? "" : " --frozen-lockfile"} --ignore-scripts`],
});

const yarn: Install = (version, lock) => ({
  managers: { yarn: version ?? yarnBerryVersion(lock) },
  steps: [
    (lock === undefined ? Number(version?.split(".")[0] ?? 1) > 1 : lock.includes("__metadata:"))
      ? `YARN_ENABLE_SCRIPTS=0 yarn install${lock === undefined ? "" : " --immutable"}`
      : `yarn install${lock === undefined ? "" : " --frozen-lockfile"} --ignore-scripts --non-interactive`,
  ],
});

/** Yarn Berry's releases write lock files with their own version numbers; null: not a lock file of Berry. */
function yarnBerryVersion(lock: string | undefined): string | null {
  const form = Number(/^__metadata:\s+version: (\d+)/m.exec(lock ?? "")?.[1] ?? 0);
  return form === 0 ? null : form < 5 ? "2" : form < 8 ? "3" : "4";
}

/** By the lock file, or by the named manager if there is no lock file. */
const INSTALLS: Readonly<Record<string, Install>> = {
  "package-lock.json": () => ({ steps: [NPM_CI] }),
  "npm-shrinkwrap.json": () => ({ steps: [NPM_CI] }),
  "pnpm-lock.yaml": pnpm,
  pnpm,
  "yarn.lock": yarn,
  yarn,
  "bun.lock": bun,
  "bun.lockb": bun,
  bun,
};

const hasDependencies = (manifest: Readonly<Record<string, unknown>>): boolean =>
  ["dependencies", "devDependencies", "optionalDependencies"].some(
    (key) => Object.keys((manifest[key] as object | undefined) ?? {}).length > 0,
  );

/** Deno's own files; with a lock file of another manager, that manager installs. */
export const denoNeeds: Reader = (folder) => {
  const from = DENO_FILES.find((name) => folder.has(name));
  if (from === undefined || NODE_LOCKS.some((name) => folder.has(name))) return undefined;
  const texts = DENO_FILES.map((name) => folder.get(name) ?? "");
  const isFurther = texts.some((text) => /"jsr:|"jsr": \{|"https?:\/\//.test(text));
  return {
    from,
    managers: { deno: null },
    registries: ["npm"],
    steps: [`deno install${folder.has("deno.lock") ? " --frozen" : ""}`],
    folders: folder.has("package.json") ? ["node_modules"] : [],
    notTaken: isFurther ? [unpreset("deno", texts, DENO_HOSTS)] : [],
  };
};

const isDeno = (folder: Folder): boolean => DENO_FILES.some((name) => folder.has(name));

const DENO_FILES = ["deno.lock", "deno.json", "deno.jsonc"];
const DENO_HOSTS = /"https?:\/\/([\w.-]+)(?=[:/"])/g;
