/** The protective lines of what goes on between Python and JavaScript: functions, calls without waiting, iteration. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const pythonJavascriptMutations: readonly Mutation[] = [
  ...law("python/begin", [
    ["isNamed ? objects.pop() ?? 0n : 0n", "0n", "Arguments by name become a dict at the end."],
  ]),
  ...law("python/otherwise", [
    ["    if (item !== 0n) return item;\n", "", "A dict has no items by their names."],
    ["    error = pendingError(python);", "    void error;", "A type is looked up while an exception is pending."],
  ]),
  ...law("python/copySet", [["    python.release(items);\n", "", "Every copy of a set leaves a list behind."]]),
  ...law("python/dateOf", [["Number(python.readInteger(milliseconds))", "0", "Every moment is 1970."]]),
  ...law("python/errorOf", [
    [
      '  if (python.isExactly(exception, "JavaScriptError")) {\n',
      "  if (false) {\n",
      "An error of JavaScript comes back as another.",
    ],
    ["    python.release(outline);\n", "", "Every exception leaves its description behind."],
    [
      "    python.release(outline);\n    python.release(exception);\n",
      "    python.release(outline);\n",
      "Exceptions are never freed.",
    ],
  ]),
  ...law("python/described", [[
    "    cause === null\n",
    "    true\n",
    "What an exception was raised from is lost.",
  ]]),
  ...law("python/PythonError", [
    ['Object.defineProperty(this, "stack", joinedStack);', ";", "A stack has no frame of Python."],
  ]),
  ...law("python/joinStack", [
    [
      "const head = `${this.name}: ${this.message}`;",
      "const head = this.name;",
      "A stack does not say what has happened.",
    ],
  ]),
  ...law("python/PythonError.takeFrames", [
    [
      "[this.message, this.#made].find(",
      "[this.#made].find(",
      "A message that has got longer stands in the stack twice.",
    ],
    ["      capture.call(Error, this);\n", "", "Deno prints an error without the frames of Python."],
  ]),
  ...law("python/framesOfProgram", [
    ["lines.slice(first)", "lines", "A stack begins with what is no business of the program's."],
    ["line.replace(placeAlone, inNoFunction)", "line", "Bun prints an error without the frames of the program."],
  ]),
  ...law("python/Interpreter.calledBack", [
    ["    this.raised = own;\n", "", "A KeyError that goes through JavaScript is no KeyError any more."],
  ]),
  ...law("python/Conversion.set", [["    this.#enter(items);\n", "", "A set that contains itself never ends."]]),
  ...law("python/datetimeOf", [
    [
      "!(milliseconds >= firstMoment && milliseconds <= lastMoment)",
      "milliseconds < firstMoment || milliseconds > lastMoment",
      "An invalid Date goes to Python.",
    ],
  ]),
  ...law("python/iterateGenerator", [
    ["    if (!isOver) closeGenerator(generator);\n", "", "Who leaves a loop leaves its generator open."],
  ]),
  ...law("python/iterateAsync", [
    [
      '    if (!isOver) await begin(python, "close_iterator", iterator, options);\n',
      "",
      "Who leaves a loop leaves its generator open.",
    ],
  ]),
  ...law("python/take_dead", [
    ["if key not in live", "if key in live", "JavaScript keeps every function that Python has ever had."],
  ]),
  ...law("python/ask_for", [
    [
      "            give_up(request)\n            raise RuntimeError(\n",
      "            raise RuntimeError(\n",
      "A function is called after it was refused.",
    ],
    [
      "        if now != call or not now & 1:\n",
      "        if call is None:\n            call, since = now, time.monotonic()\n        elif not now & 1:\n",
      "Short calls, one after the other, are taken for one that never ends.",
    ],
  ]),
  ...law("python/Job.cancel", [
    ["        self.call = None\n", "", "A call that was cancelled is made."],
    [
      "            loop.call_soon_threadsafe(self.task.cancel)\n",
      "            pass\n",
      "A coroutine that nobody wants goes on.",
    ],
  ]),
  ...law("python/format_frames", [
    ['if file != "<JavaScript>"', "if True", "The frame of JavaScript's that calls Python stands among Python's."],
  ]),
  ...law("python/is_keyed", [
    ["kind.__setattr__ is dict.__setattr__", "True", "A class that says what its attributes are is not asked."],
  ]),
  ...law("python/milliseconds_of", [
    [
      "        moment = moment.astimezone()\n",
      "        moment = moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5)))\n",
      "Local time is that of another place.",
    ],
  ]),
  ...law("python/step_of", [
    [
      "    except StopIteration:\n",
      "    except KeyError:\n",
      "A generator that ends when something is sent to it raises an error.",
    ],
  ]),
  ...law("python/JavaScriptSide.give", [
    ["    if (key === undefined) this", "    this", "The same function is another object each time."],
  ]),
  ...law("python/JavaScriptSide.poll", [
    ["        this.#functions.delete(key);\n", "", "Functions that Python has released are kept."],
  ]),
  ...law("python/JavaScriptSide.arguments", [
    [
      "    if (dicts.PyDict_Size(keywords) > 0n) values",
      "    values",
      "A function gets arguments by name that nobody gave.",
    ],
  ]),
  ...law("python/JavaScriptSide.exceptionFor", [
    [
      "    if (known !== undefined) return python.retain(known);\n",
      "",
      "Python cannot tell its own exceptions any more.",
    ],
  ]),
  ...law("python/JavaScriptSide.begin", [
    ["    this.#watch.keepAlive(true);\n", "", "The process ends while somebody waits for Python."],
    ["      reject(signal?.reason);\n", "", "Nobody learns that a call was given up."],
  ]),
  ...law("python/JavaScriptSide.answer", [
    [
      "      const result = await fn(...given);\n",
      "      const result = fn(...given);\n",
      "A promise goes to Python instead of what it gives.",
    ],
  ]),
  ...law("python/withBody", [
    [
      "  if (refused !== undefined) throw refused; // the manager may have suppressed it\n",
      "",
      "An async function seems to have been done.",
    ],
  ]),
  ...law("python/EnteredManager", [
    ["    if (this.#isLeft) return;\n", "", "A context manager is left twice."],
  ]),
];
