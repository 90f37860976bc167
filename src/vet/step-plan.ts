import type { VetStep } from "../core/behaviour.ts";
import { fieldsIn, fieldsOf } from "../core/raw-data.ts";

/** The commands that a person would run first in a repository, by its files. Pure: nothing is run here. */

export interface PlannedStep {
  readonly words: readonly string[];
  /** As a person would type it. */
  readonly command: string;
  readonly what: VetStep["what"];
  readonly from: string | null;
  /** Below the repository; empty for its top. */
  readonly folder: string;
  /** Programs that the command needs. */
  readonly needs: readonly string[];
  /** Steps to run if the command fails or cannot be run: the parts of it that can be tried all the same. */
  readonly orElse?: readonly PlannedStep[];
}

/** One folder of the repository. */
export interface ProjectFolder {
  /** Below the repository; empty for its top. */
  readonly folder: string;
  readonly names: ReadonlySet<string>;
  /** The head of a plain file; empty where there is none. */
  readonly text: (name: string) => string;
}

export interface PlanFor {
  /** The top first. */
  readonly places: readonly ProjectFolder[];
  /** The command that runs the project's own tests, where one is known. */
  readonly test: string | undefined;
  /** Presets of registries that were granted. */
  readonly granted: ReadonlySet<string>;
}

const MAX_STEPS = 24;

/** The steps in the order in which a person would run them: install, build, test. */
export function planSteps({ places, test, granted }: PlanFor): readonly PlannedStep[] {
  const found = places.flatMap((place) => ECOSYSTEMS.flatMap((read) => read(place, granted)));
  const tests: readonly PlannedStep[] = test === undefined ? [] : [testStep(test, places[0])];
  const all = ORDER.flatMap((what) => [...found, ...tests].filter((step) => step.what === what));
  const once = new Map(all.map((step) => [`${step.folder}\0${step.command}`, step]));
  return [...once.values()].slice(0, MAX_STEPS);
}

const ORDER = ["install", "build", "test"] as const;

type Reader = (place: ProjectFolder, granted: ReadonlySet<string>) => readonly PlannedStep[];

/** A shell line; its first word is the program that it needs. */
function line(
  place: ProjectFolder,
  what: PlannedStep["what"],
  from: string,
  command: string,
  more: Partial<PlannedStep> = {},
): PlannedStep {
  return {
    words: command.split(" "),
    command,
    what,
    from: place.folder === "" ? from : `${place.folder}/${from}`,
    folder: place.folder,
    needs: [command.split(" ")[0] ?? ""],
    ...more,
  };
}

/** Scripts that npm runs at the top of a project, in npm's order. */
const LIFECYCLE = [
  "preinstall",
  "install",
  "postinstall",
  "prepublish",
  "preprepare",
  "prepare",
  "postprepare",
  "dependencies",
] as const;

const node: Reader = (place, granted) => {
  if (!place.names.has("package.json")) return [];
  const manifest = fieldsIn(place.text("package.json"));
  const scripts = fieldsOf(manifest["scripts"]);
  const has = (name: string): boolean => typeof scripts[name] === "string" && scripts[name].trim() !== "";
  const scriptsOf = (names: readonly string[]): readonly PlannedStep[] =>
    names.filter(has).map((name) =>
      line(place, "install", "package.json", `npm run ${name}`, {
        words: ["npm", "run", "--silent", name],
      }),
    );
  const ownSteps = [
    ...scriptsOf(LIFECYCLE),
    ...(!has("install") && !has("preinstall") && place.names.has("binding.gyp")
      ? [line(place, "install", "binding.gyp", "node-gyp rebuild")]
      : []),
  ];
  const online = granted.has("npm");
  const lock = ["package-lock.json", "npm-shrinkwrap.json"].find((name) => place.names.has(name));
  // In a folder below the top, or if the registry is needed and not granted, only the project's own scripts are run.
  const whole =
    place.folder === "" && (online || isLocal(manifest))
      ? [
          line(
            place,
            "install",
            lock ?? "package.json",
            `npm ${lock === undefined ? "install" : "ci"}${online ? "" : " --offline"}`,
            { orElse: ownSteps },
          ),
        ]
      : ownSteps;
  const builds = place.folder === "" && has("build") ? ["build"] : [];
  return [
    ...whole,
    ...builds.map((name) =>
      line(place, "build", "package.json", `npm run ${name}`, { words: ["npm", "run", "--silent", name] }),
    ),
  ];
};

/** Whether all dependencies lie in the repository. */
function isLocal(manifest: Readonly<Record<string, unknown>>): boolean {
  const dependencies = [
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
  ].flatMap((key) => Object.values(fieldsOf(manifest[key])));
  return dependencies.every((value) => typeof value === "string" && /^(?:file|link|workspace):/.test(value));
}

const python: Reader = (place, granted) => {
  const setup = place.names.has("setup.py");
  const project = place.names.has("pyproject.toml") ? place.text("pyproject.toml") : "";
  const steps: PlannedStep[] = [];
  const isProject = setup || /^\[(?:project|build-system)\]/m.test(project);
  const ownSteps: PlannedStep[] = [
    ...(setup
      ? [line(place, "install", "setup.py", "python3 setup.py install", { needs: ["python3"] })]
      : []),
    ...backendSteps(place, project),
  ];
  const pip = granted.has("pip");
  if (isProject)
    steps.push(
      line(place, "install", setup ? "setup.py" : "pyproject.toml", "pip install .", {
        words: [
          "python3",
          "-m",
          "pip",
          "install",
          ...(pip ? [] : ["--no-index", "--no-deps"]),
          ...isolationOptions(pip),
          ".",
        ],
        needs: ["pip"],
        orElse: ownSteps,
      }),
    );
  const list = [...place.names].find((name) => /^requirements[\w.-]*\.txt$/.test(name));
  if (list !== undefined && pip)
    steps.push(
      line(place, "install", list, `pip install -r ${list}`, {
        words: ["python3", "-m", "pip", "install", "-r", list],
        needs: ["pip"],
      }),
    );
  return steps;
};

/** Without a registry, the build tools have to be installed already. */
const isolationOptions = (online: boolean): readonly string[] => (online ? [] : ["--no-build-isolation"]);

/** Code of the repository that builds it: a backend of its own, and code that other backends call. */
function backendSteps(place: ProjectFolder, project: string): readonly PlannedStep[] {
  const backend = /^build-backend\s*=\s*["']([\w.:]+)["']/m.exec(project)?.[1];
  const at = /^backend-path\s*=\s*\[([^\]]*)\]/m.exec(project)?.[1];
  const steps: PlannedStep[] = [];
  if (backend !== undefined && at !== undefined)
    steps.push(
      line(place, "install", "pyproject.toml", `python3 -m ${backend}: build_wheel`, {
        words: [
          "python3",
          standInPath("backend"),
          backend,
          ...[...at.matchAll(/["']([^"']+)["']/g)].map(([, one = "."]) => one),
        ],
        needs: ["python3"],
      }),
    );
  const isSettled =
    /^\s*attr\s*=|=\s*\{\s*attr\s*=|^\[tool\.setuptools\.cmdclass\]/m.test(project) ||
    place.names.has("setup.cfg");
  if (project.includes("setuptools") && isSettled && !place.names.has("setup.py"))
    steps.push(
      line(place, "install", "pyproject.toml", "python3 -m setuptools: what its settings import", {
        words: ["python3", standInPath("dynamic")],
        needs: ["python3"],
      }),
    );
  for (const name of ["hatch_build.py", "build.py"])
    if (place.names.has(name) && project.includes(name === "build.py" ? "build.py" : "hatch"))
      steps.push(
        line(place, "install", name, `python3 ${name}`, {
          words: ["python3", standInPath("hook"), name],
          needs: ["python3"],
        }),
      );
  return steps;
}

/** Where the stand-ins of Python's tools lie in the box. */
export const STAND_INS = "/tmp/vet-python";
const standInPath = (name: string): string => `${STAND_INS}/${name}.py`;

const make: Reader = (place) => {
  const file = ["GNUmakefile", "makefile", "Makefile"].find((name) => place.names.has(name));
  if (place.folder !== "") return [];
  const scripts = ["autogen.sh", "configure"].filter((name) => place.names.has(name));
  return [
    ...scripts.map((name) => line(place, "build", name, `sh ./${name}`)),
    ...(file === undefined ? [] : [line(place, "build", file, "make")]),
    ...(place.names.has("CMakeLists.txt")
      ? [line(place, "build", "CMakeLists.txt", "cmake -B /tmp/vet-cmake .")]
      : []),
  ];
};

const rust: Reader = (place, granted) =>
  place.names.has("Cargo.toml") && place.folder === ""
    ? [line(place, "build", "Cargo.toml", `cargo build${granted.has("cargo") ? "" : " --offline"}`)]
    : [];

const go: Reader = (place) =>
  place.names.has("go.mod")
    ? [
        line(place, "build", "go.mod", "go generate ./..."),
        line(place, "build", "go.mod", "go build -o /dev/null ./..."),
      ]
    : [];

const java: Reader = (place, granted) => {
  if (place.folder !== "") return [];
  const off = granted.has("maven") ? "" : "-o ";
  const gradle = granted.has("maven") ? "" : " --offline";
  return [
    ...(place.names.has("mvnw")
      ? [line(place, "build", "mvnw", `sh ./mvnw -B ${off}-q compile`)]
      : place.names.has("pom.xml")
        ? [line(place, "build", "pom.xml", `mvn -B ${off}-q compile`)]
        : []),
    ...(place.names.has("gradlew")
      ? [line(place, "build", "gradlew", `sh ./gradlew --no-daemon${gradle} classes`)]
      : ["build.gradle", "build.gradle.kts"]
          .filter((name) => place.names.has(name))
          .map((name) => line(place, "build", name, `gradle --no-daemon${gradle} classes`))),
  ];
};

const COMPOSER_EVENTS = [
  "pre-install-cmd",
  "post-install-cmd",
  "pre-update-cmd",
  "post-update-cmd",
  "pre-autoload-dump",
  "post-autoload-dump",
  "post-root-package-install",
  "post-create-project-cmd",
] as const;

const php: Reader = (place) => {
  if (!place.names.has("composer.json")) return [];
  const scripts = fieldsOf(fieldsIn(place.text("composer.json"))["scripts"]);
  const ownSteps = COMPOSER_EVENTS.flatMap((event) =>
    [scripts[event]]
      .flat()
      .filter((text) => typeof text === "string")
      .map((text) => composerScript(place, event, text)),
  );
  return [
    line(place, "install", "composer.json", "composer install --no-interaction", {
      needs: ["composer", "php"],
      orElse: ownSteps,
    }),
  ];
};

function composerScript(place: ProjectFolder, event: string, text: string): PlannedStep {
  const shell = text.replace(/^@php\s/, "php ").replace(/^@putenv\s+/, "export ");
  const isClass = /^[\w\\]+::\w+$/.test(shell) || shell.startsWith("@");
  const [program = ""] = shell.trim().split(/\s/);
  return line(place, "install", "composer.json", `composer run ${event}: ${text}`, {
    words: ["sh", "-c", shell],
    needs: isClass ? ["composer", "php"] : program === "php" ? ["php"] : ["sh"],
  });
}

const ruby: Reader = (place, granted) => [
  ...(place.names.has("Gemfile")
    ? [line(place, "install", "Gemfile", `bundle install${granted.size === 0 ? " --local" : ""}`)]
    : []),
  ...(place.names.has("extconf.rb") ? [line(place, "build", "extconf.rb", "ruby extconf.rb")] : []),
  ...(place.names.has("Rakefile") ? [line(place, "build", "Rakefile", "rake")] : []),
];

/** Scripts that a README tells people to start. */
const SCRIPTS: Readonly<Record<string, PlannedStep["what"]>> = {
  "install.sh": "install",
  "setup.sh": "install",
  "bootstrap.sh": "install",
  "build.sh": "build",
  "test.sh": "test",
  "run_tests.sh": "test",
  "run-tests.sh": "test",
};

const scripts: Reader = (place) =>
  place.folder === ""
    ? Object.entries(SCRIPTS)
        .filter(([name]) => place.names.has(name))
        .map(([name, what]) =>
          place.text(name).startsWith("#!/bin/sh")
            ? line(place, what, name, `sh ./${name}`)
            : line(place, what, name, `bash ./${name}`),
        )
    : [];

const ECOSYSTEMS: readonly Reader[] = [node, python, php, ruby, scripts, make, rust, go, java];

const PYTEST = /^python3 -m pytest\b/;

function testStep(test: string, top: ProjectFolder | undefined): PlannedStep {
  const from = TEST_FROM.find(([form]) => form.test(test))?.[1] ?? null;
  const found = from?.find((name) => top?.names.has(name) === true) ?? null;
  return {
    words: ["sh", "-c", test],
    command: test,
    what: "test",
    from: found,
    folder: "",
    needs: PYTEST.test(test) ? ["pytest"] : [test.split(" ")[0] ?? ""],
    ...(PYTEST.test(test) ? { orElse: [standInTests] } : {}),
  };
}

/** Test functions of Python without pytest: those that need no fixture. */
const standInTests: PlannedStep = {
  words: ["python3", standInPath("tests")],
  command: "python3 -m pytest",
  what: "test",
  from: null,
  folder: "",
  needs: ["python3"],
};

const TEST_FROM: readonly (readonly [form: RegExp, names: readonly string[]])[] = [
  [/^npm /, ["package.json"]],
  [/^cargo /, ["Cargo.toml"]],
  [/^go /, ["go.mod"]],
  [/^mvn /, ["pom.xml"]],
  [/gradlew/, ["gradlew"]],
  [/^make /, ["Makefile", "makefile", "GNUmakefile"]],
  [PYTEST, ["pytest.ini", "conftest.py", "pyproject.toml", "setup.cfg", "tox.ini"]],
];

/** Files that no command runs. */
const WORDS =
  /(?:^|\/)(?:docs?|\.github\/ISSUE_TEMPLATE)\/|\.(?:md|mdx|rst|adoc|txt|png|jpe?g|gif|svg|webp|ico|pdf)$|(?:^|\/)(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS|CHANGELOG|CODEOWNERS)[\w.-]*$/i;
const RUN_ALL_THE_SAME = /(?:^|\/)(?:requirements|constraints)[\w.-]*\.txt$|(?:^|\/)CMakeLists\.txt$/;
const TESTS =
  /(?:^|\/)(?:tests?|__tests__|specs?|fixtures?|testdata)\/|[._-](?:test|spec)\.\w+$|(?:^|\/)test_[^/]*$|(?:^|\/)conftest\.py$/;

/** Whether a command may do something else after these files changed; yes if in doubt. */
export function touches(step: PlannedStep, changed: readonly string[]): boolean {
  if (step.what === "given") return true;
  const below = changed.filter((file) => step.folder === "" || file.startsWith(`${step.folder}/`));
  if (step.from !== null && below.includes(step.from)) return true;
  const code = below.filter((file) => !WORDS.test(file) || RUN_ALL_THE_SAME.test(file));
  return step.what === "test" ? code.length > 0 : code.some((file) => !TESTS.test(file));
}
