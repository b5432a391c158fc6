"""How kernels become machine code: compiled when their file is imported, kept on disk, never taken from there stale.

numba's own cache asks whether a function's *file* changed. It does not see that a constant or a helper in another file
did, and it writes its index before its data, so that a process killed between the two leaves old machine code under a
new name. Here the name of a kernel's files holds a digest of everything that it is compiled from: other sources, other
files. That covers an upgrade in place, edited rules, and processes that compile at once; nothing is overwritten by
something else. Other packages' caches stay as they are, and ``NUMBA_CACHE_DIR`` means what it always means.

The first start says what it is doing through ``logging`` (on stderr unless the program says otherwise);
``logging.getLogger("tradgames_env").setLevel("ERROR")`` silences it.
"""

import contextlib
import functools
import hashlib
import logging
import pathlib
import time
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import config, njit, types
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.typeinfer import register_dispatcher
from numba.extending import intrinsic

_logger = logging.getLogger("tradgames_env")
_DIGEST_LENGTH = 16
_NUMBA_KNOWS = ("math", "numba", "numpy")
"""Modules whose functions numba compiles by rules of its own, which its version stands for."""
_OUTDATED_SECONDS = 24 * 3600
"""Age at which files of other sources are removed; younger ones may serve a process that is being tested beside us."""


def kernel(
    signature: Any, *, counted: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: compile a function for one signature, without the interpreter's lock, through the disk cache.

    Under ``NUMBA_DISABLE_JIT=1`` the function stays as it is.

    Args:
        signature: argument and result types, such as ``contract.LEGAL``.
        counted: with numba's reference counts, which a function that allocates needs. Kernels and loops borrow arrays
            that their callers hold; the counts' atomic updates would cost them up to half of the time.
        options: more options of ``numba.njit``. ``forceinline`` is for a helper that is worth copying into its callers:
            handing arrays over takes as long as a short helper.
    """
    options = {"nogil": True, "_nrt": counted, **options}

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        dispatcher = njit(**options)(function)
        try:
            dispatcher._cache = _KernelCache(function, options, signature)
        except RuntimeError:  # numba found no folder to write to
            _say_compiling(function.__module__, None)
        # As numba does it for a signature given to its own decorator: the function may call itself.
        with register_dispatcher(dispatcher):
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher  # type: ignore[no-any-return]

    return compiled


def address_of(compiled: Any, signature: Any) -> int:
    """Where the machine code of a kernel starts; it stays there as long as the kernel lives."""
    result = compiled.get_compile_result(signature)
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


def entry_point(compiled: Any) -> Any:
    """A kernel without numba's look at the types of its arguments, which takes longer than many a call.

    Arguments of other types than the signature's crash the process, so it is for arguments that the caller has made.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return compiled
    (result,) = compiled.overloads.values()
    return result.entry_point


def kernel_at(signature: Any) -> Any:
    """What makes a function value of the address of a kernel of this signature, inside of compiled code.

    Numba takes some tens of microseconds, as long as some hundred moves, to receive a function as an argument; a number
    costs nothing. Under ``NUMBA_DISABLE_JIT=1`` what is given comes back: there are no addresses then.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return lambda function: function
    function_type = types.FunctionType(signature)

    @intrinsic
    def function_at(typing_context: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, call_signature: Any, arguments: Any) -> Any:
            function = cgutils.create_struct_proxy(function_type)(context, builder)  # type: ignore[no-untyped-call]
            function.jit_addr = builder.inttoptr(arguments[0], cgutils.voidptr_t)
            return function._getvalue()

        return function_type(types.uint64), build

    return function_at


def digest(function: Callable[..., Any], options: dict[str, Any] | None = None, signature: Any = None) -> str:
    """Hexadecimal digest of all that a function's machine code is made from, the machine and numba itself excepted.

    Its code, the constants and helpers it names, wherever they come from, the options that numba does not count, and of
    its signature the names of fields.
    """
    settings = (config.BOUNDSCHECK, sorted((options or {}).items()))  # type: ignore[attr-defined]
    hasher = hashlib.sha256(repr(settings).encode())
    for part in (*_parts(function, function.__code__.co_names), *_fields(signature)):
        hasher.update(f"{len(part)}:{part}".encode())
    return hasher.hexdigest()[:_DIGEST_LENGTH]


def _fields(signature: Any) -> Iterator[str]:
    """Names of the fields of named tuples among the arguments: numba knows them by the name of their class alone."""
    for argument in getattr(signature, "args", ()):
        if isinstance(argument, types.NamedTuple):
            yield repr(argument.fields)


def _parts(value: Any, names: tuple[str, ...]) -> Iterator[str]:
    """What numba reads of a value: texts that are the same in every process and differ if the compiled code may."""
    if isinstance(value, Dispatcher):
        yield repr(sorted(value.targetoptions.items()))
        yield from _parts(value.py_func, value.py_func.__code__.co_names)
    elif isinstance(value, _Intrinsic):
        yield from _parts(value._defn, names)
    elif isinstance(value, FunctionType):
        yield from _function_parts(value, names)
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars}"
        yield from _parts(value.co_consts, names)
    elif isinstance(value, ModuleType):
        yield value.__name__
        if value.__name__.partition(".")[0] not in _NUMBA_KNOWS:
            for name in names:  # ``module.CONSTANT``: the code names the attribute too
                yield name
                yield from _parts(getattr(value, name, None), ())
    elif isinstance(value, tuple):
        for item in value:
            yield from _parts(item, names)
        yield "()"
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    else:
        # A text with an address in it differs in every process: then the cache never hits, which is safe.
        yield f"{type(value).__name__} {value!r}"


def _function_parts(function: FunctionType, names: tuple[str, ...]) -> Iterator[str]:
    yield from _parts(function.__code__, names)
    yield from _parts((function.__defaults__, function.__kwdefaults__), names)
    yield from _parts(tuple(cell.cell_contents for cell in function.__closure__ or ()), names)
    for name in function.__code__.co_names:
        if name in function.__globals__ and name != function.__name__:  # a recursive kernel is not its own helper
            yield name
            yield from _parts(function.__globals__[name], function.__code__.co_names)


class _KernelFiles(CompileResultCacheImpl):
    """Where numba keeps a function's machine code; file names are numba's with the digest at the end."""

    def __init__(self, function: Callable[..., Any], content: str) -> None:
        self._content = content
        super().__init__(function)  # type: ignore[no-untyped-call]

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Name of the files, without number and extension; called by numba."""
        usual: str = super().get_filename_base(fullname, abiflags)  # type: ignore[no-untyped-call]
        self.any_content = usual.replace(f"-{self.locator.get_disambiguator()}.", "-*.") + "-*.nb[ic]"
        return f"{usual}-{self._content}"


class _KernelCache(FunctionCache):
    """numba's disk cache of one function, keyed by all its sources, which takes a broken disk for an empty one."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], signature: Any) -> None:
        self._module = function.__module__
        self._impl_class = functools.partial(  # type: ignore[assignment]
            _KernelFiles, content=digest(function, options, signature)
        )
        super().__init__(function)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept machine code, or None, having said that compiling starts."""
        found = None
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception as error:  # a file cut short can fail to unpickle in any way
            _logger.debug("cannot read the cache of %s: %r", self._name, error)
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        if found is None:
            _say_compiling(self._module, self.cache_path)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code and remove what outdated sources left; a full disk costs the cache, not the game."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
            self._remove_outdated()
        except OSError as error:
            _logger.debug("cannot keep %s: %r", self._name, error)

    def _remove_outdated(self) -> None:
        oldest = time.time() - _OUTDATED_SECONDS
        for path in pathlib.Path(self.cache_path).glob(self._impl.any_content):
            if not path.name.startswith(self._impl.filename_base) and path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


@functools.cache  # once for each file
def _say_compiling(module: str, folder: str | None) -> None:
    how_often = "once" if folder else "at every start (set NUMBA_CACHE_DIR to a folder that can be written to)"
    _logger.warning("tradgames_env: compiling %s, %s ...", module.removeprefix("tradgames_env."), how_often)
