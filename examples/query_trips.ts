/**
 * From a Vortex file to Polars and to DuckDB: TypeScript reads the requested columns, and passes them on as an Arrow
 * stream.
 *
 *     deno run --allow-ffi --allow-read examples/query_trips.ts        (or bun examples/query_trips.ts)
 *
 * Polars and DuckDB (which takes streams through PyArrow) come from the Python that is found: the one that
 * CAUSEWAY_PYTHON names, or that of the active virtualenv, after `pip install polars duckdb pyarrow`. It prints:
 *
 * ```text
 * 20000 trips
 * Lyon: 6.03 km on average, for 80.6 at most
 * Nice: 5.95 km on average, for 74.4 at most
 * Paris: 5.99 km on average, for 70 at most
 * 1 seats: 254 trips with a tip above 0.9, 14.76 on average
 * 2 seats: 250 trips with a tip above 0.9, 14.98 on average
 * 3 seats: 231 trips with a tip above 0.9, 15.09 on average
 * 4 seats: 233 trips with a tip above 0.9, 14.23 on average
 * ```
 */
import { Python } from "../mod.ts";
import { openVortex } from "../src/public/vortex.ts";

using file = await openVortex(new URL("trips.vortex", import.meta.url));
console.log(`${file.rowCount} trips`);
const py = Python.open();

// Polars reads a stream of all rows as a data frame.
const { DataFrame, col } = py.import("polars");
using trips = DataFrame.$call(await file.toArrowStream({ columns: ["city", "km", "fare"] }));
using cities = trips.group_by("city").agg(col("km").mean().round(2), col("fare").max()).sort("city");
for (const [city, km, fare] of cities.rows()) console.log(`${city}: ${km} km on average, for ${fare} at most`);

// DuckDB reads a stream while it runs the query. The reader applies the filter: other rows never leave it.
const stream = await file.toArrowStream({ columns: ["seats", "fare"], filter: { column: "tip", op: ">", value: 0.9 } });
const { RecordBatchReader } = py.import("pyarrow");
const { connect } = py.import("duckdb");
using connection = connect();
using generous = RecordBatchReader.from_stream(stream);
connection.register("generous", generous);
using answer = connection.sql(
  "select seats, count(*), round(avg(fare), 2) from generous group by seats order by seats",
);
for (const [seats, count, fare] of answer.fetchall()) {
  console.log(`${seats} seats: ${count} trips with a tip above 0.9, ${fare} on average`);
}
