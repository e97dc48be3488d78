import { assert, describe, it } from "@effect/vitest"
import { Schema, Struct } from "effect"
import { jobFaults } from "../../../src/catalog/jobs/JobFaults.ts"
import { Vendor } from "../../../src/catalog/Vendors.ts"
import { callingReplicate } from "../../support/upstreams/describedCallbacks.ts"
import { describedKinds } from "../../support/upstreams/describedKinds.ts"
import { studio } from "../../support/upstreams/describedStudio.ts"

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

describe("requests of a description", () => {
  it("have only names that the handle or a form of the model's id has", () => {
    const { jobs } = Schema.decodeSync(Vendor)(studio)
    const { submit } = jobs!
    assert.deepStrictEqual(faultsOf(jobs!), [])
    const self = { url: "$.self", or: "/v1/{owner}/{id}" }
    assert.deepStrictEqual(
      faultsOf({
        ...jobs!,
        submit: {
          ...submit,
          forms: [{ model: "{owner}/{name:2}", path: "/v1/{owner}/{model:2}/{version}" }],
          uploads: { ...submit.uploads!, path: "/v1/{model}/uploads" },
          handle: { ...submit.handle, self, output: "$.output" }
        }
      }),
      [
        "submit/handle/self/or",
        "submit/handle/output",
        "submit/uploads/path",
        "submit/forms/0/path"
      ]
    )
    const id = { url: "$.id", or: "/v1/jobs" }
    assert.include(
      faultsOf({ ...jobs!, submit: { ...submit, handle: { id } } }),
      "submit/handle/id"
    )
  })

  it("that read progress are polls", () => {
    const { submit, ...rest } = Struct.omit(jobs!, ["poll", "state", "results"])
    const atOnce = { ...rest, submit: Struct.omit(submit, ["handle"]), models: [sound!] as const }
    assert.deepStrictEqual(faultsOf({ ...atOnce, progress: { at: "$.progress", of: 1 } }), [
      "submit/handle",
      "poll",
      "state",
      "results"
    ])
  })
})

describe("callbacks of a description", () => {
  const { callbacks } = Schema.decodeSync(Vendor)(callingReplicate).jobs!

  it("have an address that the vendor gets, and jobs that are polled", () => {
    assert.deepStrictEqual(faultsOf(Schema.decodeSync(Vendor)(callingReplicate).jobs!), [])
    const unsent = { ...jobs!, callbacks: callbacks! }
    assert.deepStrictEqual(faultsOf(unsent), ["callbacks/parameter"])
    assert.deepStrictEqual(
      faultsOf({ ...unsent, callbacks: { parameter: "hook", proof: { scheme: "url" } } }),
      []
    )
    const { submit, ...rest } = Struct.omit(jobs!, ["poll", "state", "results"])
    const atOnce = { ...rest, submit: Struct.omit(submit, ["handle"]), models: [sound!] as const }
    assert.include(
      faultsOf({ ...atOnce, callbacks: { parameter: "hook", proof: { scheme: "url" } } }),
      "poll"
    )
    const secret = { path: "/v1/{id}/secret", at: "$.key" }
    const proof = { scheme: "standard-webhooks", secret } as const
    assert.deepStrictEqual(faultsOf({ ...unsent, callbacks: { parameter: "hook", proof } }), [
      "callbacks/proof/secret/path"
    ])
  })
})
