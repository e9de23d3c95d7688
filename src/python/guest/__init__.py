"""What Causeway runs in the interpreter: arrays, Arrow arrays and streams of JavaScript, as Python sees them.

Python code runs on any thread of Python, which JavaScript cannot. So all that a library may ask for at any time is
written in Python: the objects that stand for arrays, their protocols, the copies, the order between streams.

``tools/embed_python.ts`` joins these files, in an order that it lists, to one source, which the interpreter runs in a
namespace of its own. There the relative imports are left out: they say where a name comes from, to a reader and to the
linter. ``exchange_api.py`` is run in the same namespace, but later, and the files in ``scripts`` stand alone.
"""
