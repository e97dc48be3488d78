import { assert, describe, it } from "@effect/vitest"
import { Result, Schema, Struct } from "effect"
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
  it("are polled with everything that polls need, or come with every submit", () => {
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

  it("state where they are", () => {
    const nowhere = { ...sound!, submit: { ...sound!.submit, results: { mime: "audio/mpeg" } } }
    const given = { ...jobs!, results: { shortLived: true }, models: [nowhere] as const }
    assert.sameMembers(faultsOf(given), ["results/urls", "models/0/submit/results/urls"])
    const twice = { content: "/v1/jobs/{id}/bytes", json: ["$"] } as const
    assert.deepStrictEqual(faultsOf({ ...jobs!, results: twice }), ["results/content"])
  })
})

describe("requests of a description", () => {
  it("use only names of the handle or of a form of the model's id", () => {
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
    const named = "{id}"
    assert.deepStrictEqual(
      faultsOf({
        ...jobs!,
        submit: {
          ...submit,
          forms: [{ model: "{id}", path: named }],
          uploads: { ...submit.uploads!, path: named },
          handle: { ...submit.handle, self: { url: "$.self", or: named } }
        },
        results: { content: named }
      }),
      ["submit/handle/self/or", "submit/uploads/path", "submit/forms/0/path", "results/content"]
    )
    const id = { url: "$.id", or: "/v1/jobs" }
    assert.include(
      faultsOf({ ...jobs!, submit: { ...submit, handle: { id } } }),
      "submit/handle/id"
    )
  })

  it("use names of one to nine whole segments, each name once", () => {
    const faultOf = (forms: object, poll = "{self}") => {
      const given = { ...studio, jobs: { ...studio.jobs!, poll: { path: poll } } }
      const submit = { ...studio.jobs!.submit, forms: [{ path: "/v1", ...forms }] }
      const read = Schema.decodeUnknownResult(Vendor)({ ...given, jobs: { ...given.jobs, submit } })
      return Result.isFailure(read) ? String(read.failure) : undefined
    }
    assert.isUndefined(faultOf({ model: "deployments/{owner}/{name:2}:{version}" }))
    const form = "a form such as {name:2}:{version}"
    for (const [model, expected] of [
      ["{a}{b}", form],
      ["{a}-{b}", form],
      ["{a}:", form],
      ["{a:0}", form],
      ["{a}/{b}/{a}", "each name only once"],
      [Array.from({ length: 17 }, (_, index) => `{a${index}}`).join("/"), form]
    ] as const) {
      const fault = faultOf({ model })
      assert.include(fault, expected)
      assert.include(fault, '["jobs"]["submit"]["forms"][0]["model"]')
    }
    for (const path of ["/{model:0}", "/{model:10}", "/{id", "/id}"]) {
      assert.include(faultOf({ model: "{a}" }, path), "names such as {id} or {model:2}")
    }
  })

  it("for the next page of a list have its URL or a parameter", () => {
    const list = { path: "/jobs", jobs: "$[*]", id: "$.id", createdAt: "$.at", next: {} }
    const shows = [{ listed: "$.prompt", sent: "$.body.prompt" }]
    const given = { ...studio, jobs: { ...studio.jobs!, list: { ...list, shows } } }
    const read = Schema.decodeUnknownResult(Vendor)(given)
    assert(Result.isFailure(read))
    assert.include(String(read.failure), "at or parameter")
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
