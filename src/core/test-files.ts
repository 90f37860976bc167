const TESTS =
  /(?:_test\.(?:go|py|rb|exs)|(?:^|\/)test_[^/]*\.py|[.-](?:test|spec)\.[cm]?[jt]sx?|Tests?\.(?:java|kt|cs|php|swift)|_spec\.rb)$/;
const SOURCE = /\.(?:[cm]?[jt]sx?|py|rs|rb|php|java|kt|go|c|cc|cpp)$/;
const IN_TESTS = /(?:^|\/)(?:tests?|__tests__|spec)\//;

/** Whether the path is a test, by the names that test runners look for. */
export const isTest = (path: string): boolean =>
  TESTS.test(path) || (SOURCE.test(path) && IN_TESTS.test(path));

/** Whatever lies where tests are: expected results, shared code, and programs that are tests by their name. */
const MEASURES =
  /(?:^|\/)(?:tests?|__tests__|__snapshots__|spec|specs|fixtures|testdata|t)\/|(?:^|\/)(?:conftest\.py|tests?\.\w+)$|(?:^|[/_.-])tests?[_.-][^/]*$|[_-]tests?\.\w+$|\.(?:snap|bats|t)$|^(?:scripts\/|tools\/|ci\/)?(?:checks?|verify)\.\w+$/i;

/** Files whose names say how tests are run, or that a test runner loads by itself. */
const RUNS_TESTS =
  /(?:^|\/)(?:conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|\.mocharc\.\w+|(?:jest|vitest|karma|ava|playwright)\.config\.\w+)$/;

const SHADOWS = /^(?:unittest|pytest|sitecustomize|usercustomize)(?:\.py$|\/)/;

/** Whether the file would be loaded in place of the test runner, or before it, because of its name. */
export const isInPlaceOfRunner = (path: string): boolean => SHADOWS.test(path);

/** Whether the file decides which tests run, and how they end. */
export const isRunnerFile = (path: string): boolean => RUNS_TESTS.test(path) || SHADOWS.test(path);

/** Whether the file measures others' work: a test, a part of a test, or what runs tests. */
export const isOfTests = (path: string): boolean => isTest(path) || MEASURES.test(path) || isRunnerFile(path);
