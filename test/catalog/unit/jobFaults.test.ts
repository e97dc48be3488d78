import { assert, describe, it } from "@effect/vitest"
import { Schema, Struct } from "effect"
import { jobFaults } from "../../../src/catalog/jobs/JobFaults.ts"
import { Vendor } from "../../../src/catalog/Vendors.ts"
import { describedKinds } from "../../support/upstreams/describedKinds.ts"

/** docs/vendors-as-files.md: rules of a description that its schema cannot express. */

const { jobs } = Schema.decodeSync(Vendor)(describedKinds)
type Jobs = NonNullable<typeof jobs>

const faultsOf = (given: Jobs) => jobFaults(given).map(([at]) => at.join("/"))
const [song, , sound] = jobs!.models

describe("results of a description", () => {
  it("are polled with all that polls need, or every submit has its own", () => {
    assert.deepStrictEqual(faultsOf(jobs!), [])
    const { submit, ...rest } = Struct.omit(jobs!, ["poll", "state", "results"])
    const atOnce = { ...rest, submit: Struct.omit(submit, ["handle"]) }
    assert.deepStrictEqual(faultsOf({ ...atOnce, models: [sound!] }), [])
    assert.deepStrictEqual(faultsOf({ ...atOnce, models: [sound!, song] }), [
      "submit/handle",
      "poll",
      "state",
      "results"
    ])
    assert.deepStrictEqual(faultsOf(Struct.omit(jobs!, ["state"])), ["state"])
  })

  it("say where they are", () => {
    const nowhere = { ...sound!, submit: { ...sound!.submit, results: { mime: "audio/mpeg" } } }
    const given = { ...jobs!, results: { shortLived: true }, models: [nowhere] as const }
    assert.sameMembers(faultsOf(given), ["results/urls", "models/0/submit/results/urls"])
  })
})
