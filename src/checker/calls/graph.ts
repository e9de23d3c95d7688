/**
 * Captures and graphs.
 *
 * @module
 */
import { CUresult } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import type { Capture, CheckedGraph } from "../capture.ts";
import type { CheckerState } from "../checker_state.ts";
import type { CheckedCalls } from "../checked_driver.ts";

/** The calls for captures. */
export function captureCalls(checker: CheckerState, inner: DriverGroups["capture"]): CheckedCalls<"capture"> {
  return {
    cuStreamBeginCapture_v2(handle, mode) {
      const stream = checker.stream(handle, "cuStreamBeginCapture_v2");
      const code = inner.cuStreamBeginCapture_v2(handle, mode);
      if (code === 0 && stream !== null) stream.capture = { of: { nodes: [], opaque: false }, after: [] };
      return code;
    },
    cuStreamEndCapture(handle, out) {
      const stream = checker.stream(handle, "cuStreamEndCapture");
      const code = inner.cuStreamEndCapture(handle, out);
      const { of } = stream?.capture ?? { of: null };
      if (of === null || code === CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) return code;
      checker.endCapture(of);
      if (code === 0) rememberGraph(checker, checker.reader.word(out), of);
      return code;
    },
    cuStreamUpdateCaptureDependencies(handle, dependencies, count, flags) {
      const stream = checker.stream(handle, "cuStreamUpdateCaptureDependencies");
      const code = inner.cuStreamUpdateCaptureDependencies(handle, dependencies, count, flags);
      if (code === 0 && stream !== null && stream.capture !== null) stream.capture.of.opaque = true;
      return code;
    },
  };
}

function rememberGraph(checker: CheckerState, handle: bigint, { nodes, opaque }: Capture): void {
  checker.graphs.set(handle, { nodes, opaque, isEmpty: false, last: [], examined: false });
  checker.lifetimes.created("graph", handle, "cuStreamEndCapture");
}

function kernelsOf({ nodes }: CheckedGraph): number {
  return nodes.filter(({ call }) => /^cuLaunch(Cooperative)?Kernel/.test(call)).length;
}

// law checker/graphCalls: checker/schedule, checker/pending_call
/** The calls for graphs. */
export function graphCalls(checker: CheckerState, inner: DriverGroups["graph"]): CheckedCalls<"graph"> {
  const { graphs, graphExecs, lifetimes } = checker;
  return {
    cuGraphCreate(out, flags) {
      const code = inner.cuGraphCreate(out, flags);
      if (code === 0) lifetimes.created("graph", checker.reader.word(out), "cuGraphCreate");
      return code;
    },
    cuGraphInstantiateWithFlags(out, handle, flags) {
      const code = inner.cuGraphInstantiateWithFlags(out, handle, flags);
      if (code !== 0) return code;
      const made = checker.reader.word(out);
      // Another library may have made it, or added nodes: what those do is not tracked, but it is work.
      const { nodes, opaque }: Pick<CheckedGraph, "nodes" | "opaque"> = graphs.get(handle) ??
        { nodes: [], opaque: true };
      const isEmpty = inner.cuGraphGetNodes(handle, 0n, checker.reader.address) === 0 && checker.reader.value === 0n;
      graphExecs.set(made, { nodes, opaque, isEmpty, last: [], examined: false });
      lifetimes.created("executable graph", made, "cuGraphInstantiateWithFlags");
      return code;
    },
    cuGraphExecUpdate(handle, graph, node, result) {
      const code = inner.cuGraphExecUpdate(handle, graph, node, result);
      const [exec, source] = [graphExecs.get(handle), graphs.get(graph)];
      if (code === 0 && exec !== undefined && source !== undefined) {
        graphExecs.set(handle, { ...source, isEmpty: exec.isEmpty, last: exec.last, examined: false });
      }
      return code;
    },
    cuGraphUpload(handle, streamHandle) {
      const pending = checker.pendingCall("cuGraphUpload", checker.stream(streamHandle, "cuGraphUpload"));
      const code = inner.cuGraphUpload(handle, streamHandle);
      if (code === 0) pending.accepted();
      return code;
    },
    cuGraphLaunch(handle, streamHandle) {
      const stream = checker.stream(streamHandle, "cuGraphLaunch");
      const graph = graphExecs.get(handle);
      if (graph !== undefined) checker.checkGraphNotFreed(stream, graph, "cuGraphLaunch");
      const recording = checker.newRecording(graph === undefined || graph.opaque ? 0 : kernelsOf(graph));
      const code = checker.observed(recording, () => inner.cuGraphLaunch(handle, streamHandle));
      if (code === 0 && stream !== null && graph !== undefined) {
        checker.launchGraph(stream, "cuGraphLaunch", graph, recording);
      }
      return code;
    },
    cuGraphExecDestroy(handle) {
      const code = inner.cuGraphExecDestroy(handle);
      if (code !== 0) return code;
      graphExecs.delete(handle);
      lifetimes.destroyed("executable graph", handle, "cuGraphExecDestroy");
      return code;
    },
    cuGraphDestroy(handle) {
      const code = inner.cuGraphDestroy(handle);
      if (code !== 0) return code;
      graphs.delete(handle);
      lifetimes.destroyed("graph", handle, "cuGraphDestroy");
      return code;
    },
  };
}
