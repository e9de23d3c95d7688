/**
 * Captures and graphs.
 *
 * @module
 */
import { CUresult } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/driver.ts";
import type { Capture, WatchedGraph } from "../capture.ts";
import type { Watch } from "../checker_state.ts";
import type { Watched } from "./calls.ts";

/** The calls for captures. */
export function captureCalls(watch: Watch, inner: DriverGroups["capture"]): Watched<"capture"> {
  return {
    cuStreamBeginCapture_v2(handle, mode) {
      const lane = watch.lane(handle, "cuStreamBeginCapture_v2");
      const code = inner.cuStreamBeginCapture_v2(handle, mode);
      if (code === 0 && lane !== null) lane.capture = { of: { nodes: [], opaque: false }, after: [] };
      return code;
    },
    cuStreamEndCapture(handle, out) {
      const lane = watch.lane(handle, "cuStreamEndCapture");
      const code = inner.cuStreamEndCapture(handle, out);
      const { of } = lane?.capture ?? { of: null };
      if (of === null || code === CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) return code;
      watch.endCapture(of);
      if (code === 0) keepGraph(watch, watch.peek.word(out), of);
      return code;
    },
    cuStreamUpdateCaptureDependencies(handle, dependencies, count, flags) {
      const lane = watch.lane(handle, "cuStreamUpdateCaptureDependencies");
      const code = inner.cuStreamUpdateCaptureDependencies(handle, dependencies, count, flags);
      if (code === 0 && lane !== null && lane.capture !== null) lane.capture.of.opaque = true;
      return code;
    },
  };
}

function keepGraph(watch: Watch, handle: bigint, { nodes, opaque }: Capture): void {
  watch.graphs.set(handle, { nodes, opaque, isEmpty: false, last: [], examined: false });
  watch.things.made("graph", handle, "cuStreamEndCapture");
}

function kernelsOf({ nodes }: WatchedGraph): number {
  return nodes.filter(({ call }) => /^cuLaunch(Cooperative)?Kernel/.test(call)).length;
}

/** The calls for graphs. */
export function graphCalls(watch: Watch, inner: DriverGroups["graph"]): Watched<"graph"> {
  const { graphs, graphExecs, things } = watch;
  return {
    cuGraphCreate(out, flags) {
      const code = inner.cuGraphCreate(out, flags);
      if (code === 0) things.made("graph", watch.peek.word(out), "cuGraphCreate");
      return code;
    },
    cuGraphInstantiateWithFlags(out, handle, flags) {
      const code = inner.cuGraphInstantiateWithFlags(out, handle, flags);
      if (code !== 0) return code;
      const made = watch.peek.word(out);
      // Somebody else may have made it, or added nodes: what they do is not followed, but it is work.
      const { nodes, opaque }: Pick<WatchedGraph, "nodes" | "opaque"> = graphs.get(handle) ??
        { nodes: [], opaque: true };
      const isEmpty = inner.cuGraphGetNodes(handle, 0n, watch.peek.address) === 0 && watch.peek.here === 0n;
      graphExecs.set(made, { nodes, opaque, isEmpty, last: [], examined: false });
      things.made("executable graph", made, "cuGraphInstantiateWithFlags");
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
    cuGraphUpload(handle, stream) {
      const work = watch.work("cuGraphUpload", watch.lane(stream, "cuGraphUpload"));
      const code = inner.cuGraphUpload(handle, stream);
      if (code === 0) work.done();
      return code;
    },
    cuGraphLaunch(handle, stream) {
      const lane = watch.lane(stream, "cuGraphLaunch");
      const graph = graphExecs.get(handle);
      if (graph !== undefined) watch.usingAll(lane, graph, "cuGraphLaunch");
      const recording = watch.record(graph === undefined || graph.opaque ? 0 : kernelsOf(graph));
      const code = watch.recorded(recording, () => inner.cuGraphLaunch(handle, stream));
      if (code === 0 && lane !== null && graph !== undefined) {
        watch.launchGraph(lane, "cuGraphLaunch", graph, recording);
      }
      return code;
    },
    cuGraphExecDestroy(handle) {
      const code = inner.cuGraphExecDestroy(handle);
      if (code !== 0) return code;
      graphExecs.delete(handle);
      things.destroyed("executable graph", handle, "cuGraphExecDestroy");
      return code;
    },
    cuGraphDestroy(handle) {
      const code = inner.cuGraphDestroy(handle);
      if (code !== 0) return code;
      graphs.delete(handle);
      things.destroyed("graph", handle, "cuGraphDestroy");
      return code;
    },
  };
}
