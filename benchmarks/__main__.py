"""python -m benchmarks NAME [options]: measure one thing, or `all`. Without a name: list the benchmarks.

A benchmark is a module of this package with `main(argv) -> dict`. It prints text for a person; the last line of the
output is its result as one JSON object. A result with `"ok": false` ends with exit code 1.
"""

import ast
import importlib
import json
import keyword
import os
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import django
from cryptography.fernet import Fernet

from config import embedded

HERE = Path(__file__).parent
Result = Mapping[str, Any]


def available() -> Mapping[str, str]:
    """Return the benchmarks by name, each with the first line of its docstring, without importing them."""
    trees = {file.stem.rstrip("_"): ast.parse(file.read_text()) for file in sorted(HERE.glob("[!_]*.py"))}
    return {name: _purpose(tree) for name, tree in trees.items() if _has_main(tree)}


def run(names: Sequence[str], argv: Sequence[str]) -> dict[str, Result]:
    """Run benchmarks with real servers and production settings, so that debugging is not measured."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    for setting, value in _throwaway().items():
        os.environ.setdefault(setting, value)
    with embedded.servers():
        django.setup()
        return {name: _module(name).main(argv) for name in names}


def main(arguments: Sequence[str]) -> int:
    known = available()
    name, *argv = arguments or [""]
    if name == "all" and not argv:
        return _report(everything := run(list(known), []), everything.values())
    if name in known:
        result = run([name], argv)[name]
        return _report(result, [result])
    _list(known)
    return 2 if name else 0


def _report(result: Result, parts: Iterable[Result]) -> int:
    print(json.dumps(result), flush=True)
    return 0 if all(part.get("ok", True) for part in parts) else 1


def _list(known: Mapping[str, str]) -> None:
    print("python -m benchmarks NAME [options]\n")
    for name, purpose in known.items():
        print(f"  {name:<12} {purpose}")
    print(f"  {'all':<12} Every one of them, one after the other.")


def _module(name: str) -> Any:
    """Return the module of a benchmark. A name that is a keyword of Python has an underscore: `import_`."""
    return importlib.import_module(f"benchmarks.{name}{'_' if keyword.iskeyword(name) else ''}")


def _throwaway() -> Mapping[str, str]:
    return {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "ALLOWED_HOSTS": "localhost,127.0.0.1",
        "PRIVATE_NETWORKS": "127.0.0.0/8,::1/128",  # where the sandbox is
    }


def _has_main(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def _purpose(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
