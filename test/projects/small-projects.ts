/** A small project with dependencies, and how to run its tests. */
export interface SmallProject {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  /**
   * A shell line for the host that creates the lock file from the registries configured for its tools; `TOOLS` is an
   * empty folder.
   */
  readonly lock?: string;
  readonly tests: readonly string[];
  /** The program that the host needs to run the same tests; without it only the box is tried. */
  readonly host: string | null;
}

const NODE_TEST =
  'const _ = require("lodash");\nconst assert = require("node:assert");\nit("chunks", () => assert.deepEqual(_.chunk([1, 2, 3], 2), [[1, 2], [3]]));\n';
const manifest = (more: object = {}): string =>
  JSON.stringify({
    name: "small",
    version: "1.0.0",
    scripts: { test: "mocha *.test.js" },
    dependencies: { lodash: "4.17.21" },
    devDependencies: { mocha: "10.8.2" },
    ...more,
  });
const PYTHON_TEST =
  "import idna\n\n\ndef test_idna():\n    assert idna.encode('exämple') == b'xn--exmple-cua'\n";
const PYPROJECT =
  '[project]\nname = "small"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["idna==3.7"]\n';
const GO_TEST = `package small

import (
	"testing"

	"github.com/google/uuid"
)

func TestNew(t *testing.T) {
	if len(uuid.NewString()) != 36 {
		t.Fatal("no uuid")
	}
}
`;
const RUST = `#[cfg(test)]
mod tests {
    #[test]
    fn formats() {
        assert_eq!(itoa::Buffer::new().format(128u64), "128");
    }
}
`;
const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>small</groupId><artifactId>small</artifactId><version>1</version>
<properties><maven.compiler.release>17</maven.compiler.release><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version><scope>test</scope></dependency></dependencies>
<build><plugins>
<plugin><artifactId>maven-compiler-plugin</artifactId><version>3.11.0</version></plugin>
<plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
</plugins></build></project>
`;

const PY_TESTS = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
const venv = (tool: string): string =>
  `python3 -m venv "$TOOLS" && "$TOOLS/bin/pip" install -q ${tool} && "$TOOLS/bin/${tool}"`;
const PHP_TEST = `<?php
require __DIR__ . "/vendor/autoload.php";
if (Own\\two() !== 2) { fwrite(STDERR, "wrong\\n"); exit(1); }
echo "ok\\n";
`;
const RUBY_TEST = `require "bundler/setup"
require "own"
abort("wrong") unless Own::TWO == 2
puts "ok"
`;
const GRADLE = `plugins { id "java" }
repositories { mavenCentral() }
dependencies { testImplementation "junit:junit:4.13.2" }
test { testLogging { events "passed" } }
`;

const TWO = "package small; public class Two { public static int two() { return 2; } }\n";
const JUNIT_4 =
  "package small; import org.junit.*; public class TwoTest { @Test public void two() { Assert.assertEquals(2, Two.two()); } }\n";
const JUNIT_5 =
  "package small; import org.junit.jupiter.api.*; class TwoTest { @Test void two() { Assertions.assertEquals(2, Two.two()); } }\n";
const BAD = "package small; class Bad { int x = }\n";

export const SMALL_PROJECTS: readonly SmallProject[] = [
  {
    name: "npm",
    files: { "package.json": manifest(), "a.test.js": NODE_TEST },
    tests: ["npm", "test"],
    host: null,
  },
  {
    name: "npm with node 20",
    files: { "package.json": manifest(), "a.test.js": NODE_TEST, ".nvmrc": "20" },
    tests: ["sh", "-c", "node --version | grep -q '^v20' && npm test"],
    host: null,
  },
  {
    name: "pnpm",
    files: { "package.json": manifest({ packageManager: "pnpm@9.15.0" }), "a.test.js": NODE_TEST },
    tests: ["pnpm", "test"],
    host: null,
  },
  {
    name: "pip",
    files: { "requirements.txt": "idna==3.7\npytest==8.3.4\n", "test_a.py": PYTHON_TEST },
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "pyproject",
    files: {
      "pyproject.toml": `${PYPROJECT}[project.optional-dependencies]\ntest = ["pytest==8.3.4"]\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[tool.setuptools]\npy-modules = []\n`,
      "test_a.py": PYTHON_TEST,
    },
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "go",
    files: {
      "go.mod": "module small\n\ngo 1.22\n\nrequire github.com/google/uuid v1.6.0\n",
      "go.sum": `github.com/google/uuid v1.6.0 h1:NIvaJDMOsjHA8n1jAhLSgzrAzy1Hgr+hNrb57e+94F0=
github.com/google/uuid v1.6.0/go.mod h1:TIyPZe4MgqvfeYDBFedMoGGpEw/LqOeaOT+nhxU+yHo=
`,
      "a_test.go": GO_TEST,
    },
    tests: ["go", "test", "./..."],
    host: "go",
  },
  {
    name: "cargo",
    files: {
      "Cargo.toml":
        '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nitoa = "=1.0.11"\n',
      "src/lib.rs": RUST,
    },
    tests: ["cargo", "test"],
    host: "cargo",
  },
  {
    name: "maven",
    files: {
      "pom.xml": POM,
      "src/main/java/small/Two.java": TWO,
      "src/test/java/small/TwoTest.java": JUNIT_5,
    },
    tests: ["mvn", "-B", "-q", "-o", "test"],
    host: "mvn",
  },
  {
    name: "maven that does not compile yet",
    files: {
      "pom.xml": POM,
      "src/main/java/small/Two.java": TWO,
      "src/main/java/small/Bad.java": BAD,
      "src/test/java/small/TwoTest.java": JUNIT_5,
    },
    tests: ["sh", "-c", "rm src/main/java/small/Bad.java && mvn -B -q -o test"],
    host: null,
  },
  {
    name: "yarn",
    files: { "package.json": manifest(), "a.test.js": NODE_TEST },
    lock: "npx -y yarn@1.22.22 install --ignore-scripts --silent && rm -rf node_modules",
    tests: ["yarn", "test"],
    host: null,
  },
  {
    name: "yarn 4",
    files: { "package.json": manifest({ packageManager: "yarn@4.5.3" }), "a.test.js": NODE_TEST },
    lock: "npx -y @yarnpkg/cli-dist@4.5.3 install --mode=update-lockfile >/dev/null && rm -rf .yarn",
    tests: ["yarn", "test"],
    host: null,
  },
  {
    name: "bun",
    files: {
      "package.json": manifest({ scripts: { test: "bun test" } }),
      "a.test.ts":
        'import { expect, test } from "bun:test";\nimport _ from "lodash";\ntest("chunks", () => expect(_.chunk([1, 2], 1).length).toBe(2));\n',
    },
    lock: "npx -y bun install --lockfile-only",
    tests: ["npm", "test"],
    host: null,
  },
  {
    name: "deno",
    files: {
      "deno.json": '{"imports":{"lodash":"npm:lodash@4.17.21"}}',
      "a_test.ts":
        'import _ from "lodash";\nDeno.test("chunks", () => {\n  if (_.chunk([1, 2], 1).length !== 2) throw new Error();\n});\n',
    },
    lock: "npx -y deno install",
    tests: ["deno", "test"],
    host: null,
  },
  {
    name: "pipenv",
    files: {
      Pipfile: '[packages]\nidna = "==3.7"\n[dev-packages]\npytest = "==8.3.4"\n',
      "test_a.py": PYTHON_TEST,
    },
    lock: `export PIPENV_VENV_IN_PROJECT=1; ${venv("pipenv")} lock && rm -rf .venv`,
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "C extension",
    files: {
      "pyproject.toml":
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n',
      "setup.py":
        'from setuptools import Extension, setup\nsetup(name="two", version="1", packages=["two"], ext_modules=[Extension("two._two", ["two/_two.c"])], extras_require={"test": ["pytest==8.3.4"]})\n',
      "pytest.ini": "[pytest]\n",
      "two/__init__.py": "from two._two import two\n",
      "two/_two.c": `#include <Python.h>
static PyObject *two(PyObject *self, PyObject *args) { return PyLong_FromLong(2); }
static PyMethodDef methods[] = {{"two", two, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_two", 0, -1, methods};
PyMODINIT_FUNC PyInit__two(void) { return PyModule_Create(&module); }
`,
      "test_a.py": "import two\n\n\ndef test_two():\n    assert two.two() == 2\n",
    },
    tests: ["sh", "-c", `python -m pip install -q --no-deps -e . && ${PY_TESTS.join(" ")}`],
    host: null,
  },
  {
    name: "requirements with hashes",
    files: { "a.in": "idna==3.7\npytest==8.3.4\n", "test_a.py": PYTHON_TEST },
    lock: `${venv("uv")} pip compile -q --generate-hashes a.in -o requirements.txt`,
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "uv",
    files: {
      "pyproject.toml": `${PYPROJECT}[dependency-groups]\ndev = ["pytest==8.3.4"]\n`,
      "test_a.py": PYTHON_TEST,
    },
    lock: `${venv("uv")} lock -q`,
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "uv, a workspace without a lock file",
    files: {
      "pyproject.toml": `${PYPROJECT.replace('"idna==3.7"', '"idna==3.7", "lib"')}[tool.uv.workspace]\nmembers = ["packages/*"]\n[tool.uv.sources]\nlib = { workspace = true }\n[dependency-groups]\ndev = ["pytest==8.3.4"]\n`,
      "packages/lib/pyproject.toml":
        '[project]\nname = "lib"\nversion = "1"\n[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n',
      "packages/lib/src/lib/__init__.py": "OURS = True\n",
      "test_a.py": `${PYTHON_TEST}\n\ndef test_lib():\n    import lib\n\n    assert lib.OURS\n`,
    },
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "pdm without a lock file",
    files: {
      "pyproject.toml": `${PYPROJECT}[tool.pdm]\ndistribution = false\n[tool.pdm.dev-dependencies]\ntest = ["pytest==8.3.4"]\n`,
      "test_a.py": PYTHON_TEST,
    },
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "poetry",
    files: {
      "pyproject.toml": `${PYPROJECT}[tool.poetry]\npackage-mode = false\n[tool.poetry.group.dev.dependencies]\npytest = "8.3.4"\n`,
      "test_a.py": PYTHON_TEST,
    },
    // Uses the index configured for pip, as a company's project would name its own.
    lock: `index=$(python3 -m pip config get global.index-url 2>/dev/null || COLUMNS=400 python3 -m pip help install | grep -o 'default:* *https[^)]*' | grep -o 'https.*')
printf '[[tool.poetry.source]]\\nname = "own"\\nurl = "%s"\\npriority = "primary"\\n' "$index" >>pyproject.toml
${venv("poetry")} lock -q`,
    tests: PY_TESTS,
    host: null,
  },
  {
    name: "gradle",
    files: {
      "build.gradle": GRADLE,
      "src/main/java/small/Two.java": TWO,
      "src/test/java/small/TwoTest.java": JUNIT_4,
    },
    tests: ["gradle", "--no-daemon", "--offline", "test"],
    host: null,
  },
  {
    name: "gradle, modules below a top without a build, that does not compile yet",
    files: {
      "settings.gradle": 'include "two", "own"\n',
      "two/build.gradle": 'plugins { id "java" }\n',
      "two/src/main/java/small/Two.java": TWO,
      "two/src/main/java/small/Bad.java": BAD,
      "own/build.gradle": `${GRADLE}dependencies { compile project(":two"); testRuntimeOnly "com.google.code.gson:gson:2.10.1" }\n`,
      "own/src/test/java/small/TwoTest.java": JUNIT_4,
    },
    tests: ["sh", "-c", "rm two/src/main/java/small/Bad.java && gradle --no-daemon --offline test"],
    host: null,
  },
  {
    // Its dependency is a local folder: this tests composer, not its registry.
    name: "composer",
    files: {
      "composer.json": JSON.stringify({
        name: "small/small",
        repositories: [{ type: "path", url: "own" }, { "packagist.org": false }],
        require: { "own/own": "*" },
        "minimum-stability": "dev",
      }),
      "own/composer.json": JSON.stringify({
        name: "own/own",
        version: "1.0.0",
        autoload: { files: ["two.php"] },
      }),
      "own/two.php": "<?php\nnamespace Own;\nfunction two(): int { return 2; }\n",
      "test.php": PHP_TEST,
    },
    tests: ["php", "test.php"],
    host: null,
  },
  {
    name: "bundler",
    files: {
      Gemfile: 'gem "own", path: "own"\n',
      "own/own.gemspec":
        'Gem::Specification.new { |s| s.name = "own"; s.version = "1.0.0"; s.summary = "own"; s.authors = ["own"]; s.files = ["lib/own.rb"] }\n',
      "own/lib/own.rb": "module Own; TWO = 2; end\n",
      "test.rb": RUBY_TEST,
    },
    tests: ["ruby", "test.rb"],
    host: null,
  },
  {
    name: "cmake",
    files: {
      "CMakeLists.txt":
        "cmake_minimum_required(VERSION 3.10)\nproject(small CXX)\nenable_testing()\nadd_executable(a a.cpp)\nadd_test(NAME a COMMAND a)\n",
      "a.cpp": "#include <vector>\nint main() { return std::vector<int>{1, 2}.size() == 2 ? 0 : 1; }\n",
    },
    tests: ["sh", "-c", "cmake -S . -B /tmp/b && cmake --build /tmp/b && ctest --test-dir /tmp/b"],
    host: null,
  },
];
