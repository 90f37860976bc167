/**
 * Files that let code of a repository run in a box that lacks its tools: modules that replace Python's tools and call
 * the hooks of the repository, and a clock that is ahead. They only ever run in a box.
 */

/** Keyed by file name. Existing modules take precedence; these come last in the path. */
export const PYTHON_STAND_INS: Readonly<Record<string, string>> = {
  "sitecustomize.py": `
import sys, types, importlib, importlib.abc, importlib.machinery
class Anything:
    def __init__(self, *a, **k): self.__dict__["_k"] = k
    def __getattr__(self, n):
        if n.startswith("__") and n.endswith("__"): raise AttributeError(n)
        return Anything()
    def __call__(self, *a, **k):
        if len(a) == 1 and callable(a[0]) and not isinstance(a[0], Anything) and not k: return a[0]
        return Anything()
    def __iter__(self): return iter(())
    def __getitem__(self, k): return Anything()
    def __setitem__(self, k, v): pass
    def __contains__(self, k): return False
    def __len__(self): return 0
    def __bool__(self): return False
    def __str__(self): return ""
    def __fspath__(self): return "."
    def __enter__(self): return self
    def __exit__(self, *a): return False
    def __mro_entries__(self, bases): return (Command,)
    def __add__(self, o): return o
    def __radd__(self, o): return o
class Command(object):
    user_options = []
    def __init__(self, *a, **k):
        self.distribution = a[0] if a else Anything()
    def initialize_options(self): pass
    def finalize_options(self): pass
    def ensure_finalized(self): pass
    def run(self, *a, **k): return 0
    def initialize(self, *a, **k): pass
    def get_sub_commands(self): return []
    def get_outputs(self): return []
    def __getattr__(self, n):
        if n.startswith("__"): raise AttributeError(n)
        return Anything()
def run_one(cls, dist):
    try:
        one = cls(dist)
        for name in ("initialize_options", "finalize_options", "run"):
            try: getattr(one, name)()
            except Exception as e: print("%s.%s: %s" % (getattr(cls, "__name__", cls), name, e))
    except Exception as e: print("%s: %s" % (cls, e))
def is_literal(node):
    import ast
    try: ast.literal_eval(node); return True
    except Exception: return False
def attribute(name, roots):
    # As setuptools does: a value that is written out is read, for any other the module is imported.
    import ast, importlib, os
    module, _, attr = name.rpartition(".")
    for root in roots:
        base = os.path.join(root, *module.split("."))
        file = next((f for f in (base + ".py", os.path.join(base, "__init__.py")) if os.path.isfile(f)), None)
        if file is None: continue
        try:
            with open(file, errors="replace") as f: body = ast.parse(f.read()).body
            if any(isinstance(n, ast.Assign) and is_literal(n.value) and any(getattr(t, "id", None) == attr for t in n.targets) for n in body): return
            sys.path.insert(0, root or "."); importlib.import_module(module)
        except Exception as e: print("%s: %s" % (name, e))
        return
def attributes(k):
    import configparser, re
    names = []
    config = configparser.RawConfigParser(strict=False)
    try:
        config.read("setup.cfg")
        names += [v.split(":", 1)[1].strip() for s in config.sections() for _, v in config.items(s) if (v or "").strip().startswith("attr:")]
    except Exception as e: print(e)
    try:
        with open("pyproject.toml", errors="replace") as f: names += re.findall(r"""\\battr\\s*=\\s*["']([\\w.]+)["']""", f.read())
    except OSError: pass
    given = k.get("package_dir") or {}
    for name in names[:20]: attribute(name, ["", "src", "lib"] + ([given[""]] if isinstance(given, dict) and "" in given else []))
def commands():
    # Commands of their own that settings name: setuptools imports and runs them.
    import configparser, re
    found = {}
    config = configparser.RawConfigParser(strict=False)
    try:
        config.read("setup.cfg")
        lines = config.get("options", "cmdclass", fallback="").splitlines()
        found.update(dict([p.strip() for p in l.split("=", 1)] for l in lines if "=" in l))
    except Exception as e: print(e)
    try:
        with open("pyproject.toml", errors="replace") as f: table = re.search(r"(?ms)^\\[tool\\.setuptools\\.cmdclass\\](.*?)(?=^\\[|\\Z)", f.read())
        found.update(re.findall(r"""(?m)^\\s*([\\w-]+)\\s*=\\s*["']([\\w.]+)["']""", table.group(1)) if table else {})
    except OSError: pass
    return found
def setup(*a, **k):
    attributes(k)
    dist = Anything(); dist.__dict__.update(k); dist.__dict__["metadata"] = Anything()
    given = dict(k.get("cmdclass") or {})
    for name, where in commands().items():
        try:
            module, _, attr = where.strip().rpartition("."); sys.path.insert(0, ".")
            given.setdefault(name, getattr(importlib.import_module(module), attr))
        except Exception as e: print("%s: %s" % (where, e))
    order = ["egg_info", "dist_info", "build_py", "build_ext", "build", "install_lib", "install", "develop", "editable_wheel", "bdist_wheel", "bdist_egg", "sdist", "test"]
    for name in order + [n for n in given if n not in order]:
        if name in given: run_one(given[name], dist)
    for name in ("distclass",):
        if isinstance(k.get(name), type):
            try: k[name](k)
            except Exception as e: print(e)
    return dist
def find_packages(*a, **k): return []
class Module(types.ModuleType):
    def __getattr__(self, n):
        if n.startswith("__") and n.endswith("__"): raise AttributeError(n)
        if n in ("setup",): return setup
        if n.startswith("find_"): return find_packages
        if n in ("Extension", "CythonExtension", "Pybind11Extension"): return Anything
        top = self.__name__.split(".")[0]
        if top in ("setuptools", "distutils", "wheel", "hatchling", "skbuild", "Cython", "pybind11", "numpy", "torch"):
            return type(n, (Command,), {})
        return Anything()
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    tops = set("setuptools distutils wheel pkg_resources hatchling poetry flit_core pdm maturin skbuild Cython numpy pybind11 torch versioneer setuptools_scm setuptools_rust cffi mypyc requests pytest packaging toml tomli six".split())
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.tops:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec): return Module(spec.name)
    def exec_module(self, module): module.__path__ = []
sys.meta_path.append(Finder())
`,
  "backend.py": `
import sys, importlib
name, paths = sys.argv[1], sys.argv[2:]
sys.path[:0] = paths
module, _, rest = name.partition(":")
backend = importlib.import_module(module)
for part in rest.split(".") if rest else []: backend = getattr(backend, part)
import os
os.makedirs("/tmp/vet-wheel", exist_ok=True)
for hook, args in (("get_requires_for_build_wheel", ()), ("get_requires_for_build_editable", ()), ("prepare_metadata_for_build_wheel", ("/tmp/vet-wheel",)), ("build_wheel", ("/tmp/vet-wheel",)), ("build_editable", ("/tmp/vet-wheel",)), ("build_sdist", ("/tmp/vet-wheel",))):
    call = getattr(backend, hook, None)
    if call is None: continue
    try: call(*args)
    except Exception as e: print("%s: %s" % (hook, e))
`,
  "dynamic.py": `
from sitecustomize import setup
setup()
`,
  "hook.py": `
import sys, runpy
sys.path.insert(0, ".")
from sitecustomize import Command, Anything
found = runpy.run_path(sys.argv[1], run_name="hook")
for name, value in list(found.items()):
    if isinstance(value, type) and issubclass(value, Command) and value is not Command:
        one = value(Anything())
        for method in ("initialize", "update", "run", "finalize"):
            try: getattr(one, method)("standard", {}, "")
            except Exception as e: print("%s.%s: %s" % (name, method, e))
    elif callable(value) and name in ("build", "main", "run", "pdm_build_initialize"):
        try: value({}) if name == "build" else value()
        except Exception as e: print("%s: %s" % (name, e))
`,
  "tests.py": `
import sys, os, runpy, inspect, types
sys.path[:0] = [".", "tests", "test", "src"]
from sitecustomize import Anything
class Raises:
    def __init__(self, *a, **k): self.value = None
    def __enter__(self): return self
    def __exit__(self, kind, value, tb): self.value = value; return kind is not None
pytest = types.ModuleType("pytest")
def fixture(*a, **k):
    if a and callable(a[0]): return mark_fixture(a[0], k)
    return lambda f: mark_fixture(f, k)
def mark_fixture(f, k):
    f.is_fixture = True; f.autouse = k.get("autouse", False); return f
pytest.fixture = fixture
pytest.raises = Raises
pytest.mark = Anything()
for name in ("skip", "fail", "importorskip", "approx", "param", "warns", "exit", "hookimpl", "register_assert_rewrite"):
    setattr(pytest, name, Anything())
sys.modules["pytest"] = pytest
class Cut(Exception): pass
def values(f, have):
    if inspect.isgeneratorfunction(f): return next(f(**{n: have(n) for n in inspect.signature(f).parameters}))
    return f(**{n: have(n) for n in inspect.signature(f).parameters})
fixtures = {}
def have(name):
    if name in fixtures: return values(fixtures[name], have)
    if name in ("tmp_path", "tmpdir"):
        import tempfile, pathlib
        return pathlib.Path(tempfile.mkdtemp())
    return Anything()
def run(what, f):
    try: values(f, have)
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt): raise
        print("%s: %s: %s" % (what, type(e).__name__, e))
def load(file):
    sys.path.insert(0, os.path.dirname(file) or ".")
    try: return runpy.run_path(file, run_name=os.path.basename(file)[:-3])
    except BaseException as e:
        print("%s: %s: %s" % (file, type(e).__name__, e)); return {}
HOOKS = ("pytest_configure", "pytest_sessionstart", "pytest_load_initial_conftests", "pytest_addoption", "pytest_report_header", "pytest_collection_modifyitems", "pytest_runtest_setup", "pytest_sessionfinish", "pytest_unconfigure")
def hook(name, f):
    run(name, lambda: f(*[Anything() for _ in inspect.signature(f).parameters]))
def plugin(name):
    import importlib
    try: module = importlib.import_module(name)
    except BaseException as e: return print("%s: %s: %s" % (name, type(e).__name__, e))
    for each in HOOKS:
        if callable(getattr(module, each, None)): hook(each, getattr(module, each))
import re
for settings in ("pytest.ini", "setup.cfg", "tox.ini", "pyproject.toml"):
    if os.path.exists(settings):
        for name in re.findall(r"-p[ =]*([A-Za-z_][\\w.]*)", " ".join(re.findall(r"(?m)^\\s*addopts[^\\[]*", open(settings, errors="replace").read()))):
            if os.path.exists(name.replace(".", "/") + ".py") or os.path.isdir(name.replace(".", "/")): plugin(name)
files = []
for at, folders, names in os.walk("."):
    folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in ("node_modules", "venv", "env", "build", "dist"))
    files += [os.path.join(at, n) for n in sorted(names) if n == "conftest.py" or (n.endswith(".py") and (n.startswith("test_") or n.endswith("_test.py")))]
files.sort(key=lambda f: (not f.endswith("conftest.py"), f))
for file in files[:500]:
    found = load(file)
    for name, value in list(found.items()):
        if getattr(value, "is_fixture", False): fixtures[name] = value
        if name in HOOKS: hook(name, value)
    named = found.get("pytest_plugins", [])
    for name in [named] if isinstance(named, str) else list(named): plugin(name)
    for name, value in list(found.items()):
        if getattr(value, "autouse", False): run(name, value)
    for name, value in list(found.items()):
        if callable(value) and name.startswith("test") and not isinstance(value, type): run(name, value)
        if isinstance(value, type) and name.startswith("Test"):
            one = value()
            for method in dir(one):
                if method.startswith("test") or method in ("setup_method", "setUp"): run(name + "." + method, getattr(one, method))
`,
};

/** Preloaded, the library sets the clock ahead, and ends sleeps at once. */
export const CLOCK_AHEAD = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long long ahead = 400LL * 86400 + 3 * 3600;
int clock_gettime(clockid_t id, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int r = real(id, t);
  if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += ahead;
  return r;
}
time_t time(time_t *out) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); if (out) *out = t.tv_sec; return t.tv_sec; }
int gettimeofday(struct timeval *v, void *z) { (void)z; struct timespec t; clock_gettime(CLOCK_REALTIME, &t); v->tv_sec = t.tv_sec; v->tv_usec = t.tv_nsec / 1000; return 0; }
int nanosleep(const struct timespec *w, struct timespec *l) { ahead += w->tv_sec; if (l) l->tv_sec = l->tv_nsec = 0; return 0; }
int clock_nanosleep(clockid_t id, int f, const struct timespec *w, struct timespec *l) { (void)id; if (!(f & TIMER_ABSTIME)) ahead += w->tv_sec; if (l) l->tv_sec = l->tv_nsec = 0; return 0; }
unsigned sleep(unsigned s) { ahead += s; return 0; }
int usleep(unsigned u) { (void)u; return 0; }
`;
