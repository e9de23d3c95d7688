/** The protective lines of calls between Python and JavaScript: functions, asynchronous calls, iteration. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const pythonJavascriptMutations: readonly Mutation[] = [
  ...law("python/argumentsOf", [
    ["isNamed ? objects.pop() ?? 0n : 0n", "0n", "Keyword arguments become a dict at the end."],
    [
      "isNamed ? [...args.slice(0, -1), { ...last.values }] : args",
      "isNamed ? [...args.slice(0, -1)] : args",
      "Keyword arguments are lost.",
    ],
  ]),
  ...law("python/otherwise", [
    ["    if (item !== 0n) return item;\n", "", "Items of a dict cannot be read by their names."],
    [
      "    python.release(exception);\n    if (item !== 0n) return item;\n",
      "    if (item !== 0n) return item;\n",
      "Each item that is read by its name leaves an exception behind.",
    ],
  ]),
  ...law("python/hasNamedItems", [
    ["!(python.typeFlags(object) & byIndex) && ", "", "A list, whose items have no names, is said to have some."],
    [' && python.typeHas(object, "__getitem__")', "", "A number is said to have items."],
  ]),
  ...law("python/copySet", [["    python.release(items);\n", "", "Every copy of a set leaves a list behind."]]),
  ...law("python/dateOf", [["Number(python.readInteger(milliseconds))", "0", "Every date is in 1970."]]),
  ...law("python/errorOf", [
    [
      '  if (python.isExactly(exception, "JavaScriptError")) {\n',
      "  if (false) {\n",
      "A JavaScript error comes back as a different one.",
    ],
    ["    python.release(outline);\n", "", "Every exception leaves its description behind."],
    ["raised === null && calledAt", "calledAt", "An exception that passes through JavaScript loses its traceback."],
    [
      "  else retained.releaseWithError();",
      "  else retainForTurn(retained);",
      "Calls that fail in one turn lose their exceptions.",
    ],
  ]),
  ...law("python/described", [[
    "cause === null ? {}",
    "true ? {}",
    "The cause of an exception is lost.",
  ]]),
  ...law("python/PythonError", [
    ['Object.defineProperty(this, "stack", joinedStack);', ";", "A stack has no Python frames."],
  ]),
  ...law("python/joinStack", [
    [
      "const head = `${this.name}: ${this.message}`;",
      "const head = this.name;",
      "A stack does not contain the message.",
    ],
  ]),
  ...law("python/PythonError.takeFrames", [
    [
      "[this.message, this.#made].find(",
      "[this.#made].find(",
      "A message that has grown is in the stack twice.",
    ],
    ["      capture.call(Error, this);\n", "", "Deno prints an error without the Python frames."],
  ]),
  ...law("python/framesOfProgram", [
    ["lines.slice(first)", "lines", "A stack begins with frames that are not part of the program."],
    ["line.replace(placeAlone, inNoFunction)", "line", "Bun prints an error without the program's frames."],
  ]),
  ...law("python/Interpreter.calledBack", [
    ["    this.raised = own;\n", "", "A KeyError that passes through JavaScript is no longer a KeyError."],
  ]),
  ...law("python/Conversion.set", [
    ["    this.#enter(items);\n", "", "A set that contains itself is followed without end."],
    ["=== BigInt(items.size)) return made;", "> 0n) return made;", "An item of a Set is lost."],
  ]),
  ...law("python/datetimeOf", [
    [
      "!(milliseconds >= firstMoment && milliseconds <= lastMoment)",
      "milliseconds < firstMoment || milliseconds > lastMoment",
      "An invalid Date reaches Python.",
    ],
  ]),
  ...law("python/iterateGenerator", [
    ["    if (value !== over) closeGenerator(generator);\n", "", "Leaving a loop leaves its generator open."],
  ]),
  ...law("python/is_awaitable", [
    [
      "    except BaseException:  # whatever its class does when it is asked\n        return False\n",
      "    finally:\n        pass\n",
      "A thread dies of a result that it asks.",
    ],
  ]),
  ...law("python/tell_unbegun", [
    [
      "            job.tell()\n",
      "            pass\n",
      "A coroutine that is cancelled before it begins is awaited for ever.",
    ],
  ]),
  ...law("python/iterateAsync", [
    ["isGenerator && given !== undefined", "false", "What a program sends to an asynchronous generator is lost."],
    [
      "        if (!isGenerator) throw error;\n",
      "        throw error;\n",
      "An asynchronous generator cannot catch what is thrown into it.",
    ],
    [
      '    if (!isOver) await begin(iterator, options, "close_iterator", () => []);\n',
      "",
      "Leaving a loop leaves its generator open.",
    ],
  ]),
  ...law("python/take_dead", [
    ["if key not in live", "if key in live", "JavaScript keeps every function that Python has ever had."],
  ]),
  ...law("python/ask_for", [
    ["in while_waiting:", "in ():", "Calls that wait for JavaScript take the threads that it waits for."],
  ]),
  ...law("python/Patience.look", [
    [
      " and self.request.claim(False):\n",
      ":\n",
      "A refused function is called.",
    ],
    [
      "        if now != self.call or not now & 1:\n",
      "        if self.call is None:\n            self.call, self.since = now, time.monotonic()\n        elif not now & 1:\n",
      "Short calls in a row are mistaken for one that never ends.",
    ],
    [
      "        if ended.is_set() or numbers_for_javascript[2]:\n",
      "        if False:\n",
      "A function of a Worker that has ended is awaited for ever.",
    ],
    [
      " or numbers_for_javascript[2]",
      "",
      "A thread waits for a program that was loaded again, until that opens Python.",
    ],
  ]),
  ...law("python/runs_loop", [
    [
      "    return running is not None and running() is not None\n",
      "    return False\n",
      "Asyncio's loop stands still while a coroutine awaits a function.",
    ],
    [
      "running is not None and running() is not None",
      "running is not None",
      "Once asyncio was imported, no thread gets what an async function returns.",
    ],
  ]),
  ...law("python/await_answer", [
    [
      "Patience(request, function.__name__)",
      'Patience(request, function.__name__)\n    function = ""',
      "JavaScript has forgotten a function, whose only reference is its coroutine, before it is called.",
    ],
    [
      "            request.claim(False)  # a call that nobody awaits any more does not begin\n",
      "            pass\n",
      "A function is called although the coroutine that had asked for it was cancelled.",
    ],
    [
      "                patience.look()\n",
      "                pass\n",
      "A coroutine that JavaScript waits for awaits a function for ever.",
    ],
    [
      "        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more\n            loop",
      "        loop",
      "What a function answers after a loop has ended is an error that nobody catches.",
    ],
  ]),
  ...law("python/Job.tell", [
    [
      "        if ended.is_set():\n            self.end = None\n",
      "        if False:\n            pass\n",
      "What a call returns after its Worker has ended is kept.",
    ],
    [
      "end, self.end = self.end, None",
      "end = self.end",
      "A call that did not block keeps the exception's frames alive.",
    ],
  ]),
  ...law("python/Job.cancel", [
    ["        self.drop()\n", "", "A cancelled call is made."],
    [
      "            loop.call_soon_threadsafe(self.task.cancel)\n",
      "            pass\n",
      "A cancelled coroutine continues.",
    ],
  ]),
  ...law("python/format_frames", [
    ['if file != "<JavaScript>"', "if True", "The JavaScript frame that calls Python is among the Python frames."],
  ]),
  ...law("python/isKeyed", [
    [
      " && !(this.typeFlags(object) & Py_TPFLAGS.MAPPING)",
      "",
      "What is set in os.environ is an attribute, which no process that is started sees.",
    ],
  ]),
  ...law("python/is_keyed", [
    ["kind.__setattr__ is object.__setattr__", "True", "A class that defines its own attribute access is bypassed."],
  ]),
  ...law("python/milliseconds_of", [
    [
      "return local_seconds(moment) * 1000 + moment.microsecond // 1000",
      "moment = moment.astimezone()",
      "Local time is an hour off where clocks are set forward.",
    ],
    [
      'moment.tz_localize("UTC")\n',
      "moment.astimezone()\n",
      "A time of pandas cannot be converted, nor anything that contains it.",
    ],
  ]),
  ...law("python/step_of", [
    [
      "    except StopIteration:\n",
      "    except KeyError:\n",
      "A generator that ends when something is sent to it raises an error.",
    ],
  ]),
  ...law("python/JavaScriptSide.exportFunction", [
    ["    if (key === undefined) this", "    this", "The same function is a different object each time."],
  ]),
  ...law("python/JavaScriptSide.poll", [
    ["        this.#functions.delete(key);\n", "", "Functions that Python has released are kept."],
  ]),
  ...law("python/JavaScriptSide.arguments", [
    [
      "    if (dicts.PyDict_Size(keywords) > 0n) values",
      "    values",
      "A function gets keyword arguments that were not given.",
    ],
  ]),
  ...law("python/JavaScriptSide.exceptionFor", [
    [
      "    if (address !== 0n) return python.retain(address);\n",
      "",
      "Python no longer recognizes its own exceptions.",
    ],
    [" : this.#exceptionIn(error)", " : 0n", "Python does not catch an exception of its own that a function throws."],
    [
      "Py_TPFLAGS.BASE_EXC_SUBCLASS ? handle.reference : 0n",
      "0n ? 0n : handle.reference",
      "Any object of Python's is raised.",
    ],
  ]),
  ...law("python/JavaScriptSide.exceptionOrRaised", [
    [
      "return this.exceptionFor(raised);",
      "throw raised;",
      "A function that throws while a signal's handler raises is awaited for ever.",
    ],
  ]),
  ...law("python/RetainedException", [
    ["finalizer.register(this, this.#reference);", "", "An exception is kept for ever, though its error is gone."],
    [
      "    if (object !== 0n) this.#value = this.#reference.python.wrap(object);\n    return this.#value;\n",
      "    return object === 0n ? null : this.#reference.python.wrap(object);\n",
      "An exception can be read from its error only once.",
    ],
    [
      "handle === undefined ? this.#reference.object : handle.reference",
      "0n",
      "Python no longer recognizes its exceptions.",
    ],
    ['"drop_traces_if_lone"', '"is_plain_exception"', "What a function has caught keeps the variables of its frames."],
  ]),
  ...law("python/retainForTurn", [
    [
      "  if (ofTurn.length === mostOfTurn) ofTurn.shift()?.forget();\n",
      "",
      "A program that catches exceptions in one turn keeps all of them.",
    ],
    [
      "ofTurn.shift()?.forget()",
      "exception.forget()",
      "The last exceptions of a turn are gone, and the first are kept.",
    ],
    ["  ofTurn.length = 0;\n", "", "The last exceptions of a program are never released."],
  ]),
  ...law("python/CauseOf", [
    ["    if (this.#value !== undefined) return this.#value;\n", "", "A cause is a new object each time."],
    ["isThere ? ", "false ? ", "The cause of an exception cannot be read."],
    ["isThere ? ", "true ? ", "The cause of an error that was closed cannot be asked for."],
  ]),
  ...law("python/Conversion.exception", [
    ["if (address !== 0n) return this.#python.retain(address);", "", "An error cannot be passed to Python."],
  ]),
  ...law("python/Raised", [
    ["exception.dropTraces();", ";", "An exception keeps the variables of its frames."],
    ["      retainForTurn(exception);\n", "", "What functions have caught is never released."],
  ]),
  ...law("python/JavaScriptSide.begin", [
    ["    this.#watch.keepAlive(true);\n", "", "The process exits while a call to Python is awaited."],
    ["      reject(signal?.reason);\n", "", "The caller is not notified that a call was abandoned."],
  ]),
  ...law("python/JavaScriptSide.bindExit", [
    [
      "if (code !== undefined)",
      "if (false)",
      "A process does not end while a call is made that its libraries wait for.",
    ],
  ]),
  ...law("python/JavaScriptSide.takeAll", [
    ["    this.numbers[3] = 0;\n", "", "Python rings once, and never again."],
    [
      '    python.release(python.callHelper("run_handlers", []));',
      "   ",
      "What the handler of a signal raises is the error of the next call.",
    ],
  ]),
  ...law("python/JavaScriptSide.answer", [
    [
      " ? await made : made;",
      " ? made : made;",
      "A promise is passed to Python instead of its result.",
    ],
    [
      "handleIn(made) === undefined ? await made : made;",
      "await made;",
      "A coroutine is awaited if another thread asked for it, and only then.",
    ],
    ["if (isOurs !== yes) return null;", "", "A function whose thread was refused is called later."],
    [
      "      if (call !== null) {\n",
      "      if (call === null) request.close();\n      else {\n",
      "After a signal whose handler raises as a request is dropped, no other thread of Python's runs.",
    ],
  ]),
  ...law("python/JavaScriptSide.tell", [
    [
      "      return this.#tell(request, outcomes.raised, () => this.exceptionFor(error));\n",
      "      throw error;\n",
      "What a signal's handler raises as the lock is taken keeps a thread from its answer.",
    ],
    [
      "[outcome, value] = [outcomes.raised, this.#exceptionOrRaised(error)];",
      "throw error;",
      "A function whose result cannot be passed to Python is awaited for ever.",
    ],
  ]),
  ...law("python/withBody", [
    [
      "  if (refused !== undefined) throw refused; // the manager may have suppressed it\n",
      "",
      "An async function seems to have completed.",
    ],
  ]),
  ...law("python/EnteredManager", [
    ["    if (this.#isLeft) return;\n", "", "A context manager is exited twice."],
  ]),
];
