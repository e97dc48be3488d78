/**
 * The cost of a gateway in the process of a test, after the first one of a run: the CPU of a start and of a close,
 * compared with opening an embedded store from its template, which every start would need if stores were not reused.
 *
 *   node bench/testGateway.ts [rounds]
 */
import { PGlite } from "@electric-sql/pglite"
import { DateTime, Effect } from "effect"
import { startParams } from "../src/db/PgliteOptions.ts"
import { startTestGateway } from "../src/testing/index.ts"
import { embeddedTemplate, startedStore } from "../src/testing/StoreTemplates.ts"
import { cpuMillis, median } from "./measures.ts"

const [rounds = 20] = process.argv.slice(2).map(Number)

const { fill, hash } = startedStore(DateTime.makeUnsafe(0))
const loadDataDir = await Effect.runPromise(embeddedTemplate(hash, fill))
const costs = { start: Array.of<number>(), close: Array.of<number>(), open: Array.of<number>() }

/** The CPU milliseconds of the work, recorded under this name except in warm-up rounds. */
const measure = async <A>(name: keyof typeof costs, round: number, work: () => Promise<A>) => {
  const before = cpuMillis()
  const made = await work()
  if (round >= warmUps) costs[name].push(cpuMillis() - before)
  return made
}

/** Warm-up rounds, during which the JavaScript compiler makes each start cheaper. */
const warmUps = 5

for (let round = 0; round < warmUps + rounds; round += 1) {
  const gateway = await measure("start", round, () => startTestGateway())
  await measure("close", round, gateway.close)
  const store = await measure("open", round, () =>
    PGlite.create({ loadDataDir, startParams: startParams(false) })
  )
  await store.close()
}

const [start, close, open] = [median(costs.start), median(costs.close), median(costs.open)]
console.log(
  `start ${start.toFixed(0)} ms, close ${close.toFixed(0)} ms, opening a store ${open.toFixed(0)} ms of CPU; ` +
    `a start is ${(start / open).toFixed(2)} of opening a store`
)
