import { ElevenLabsClient, ElevenLabsError } from "@elevenlabs/elevenlabs-js"
import { Struct } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { elevenLabs } from "../../../src/catalog/jobs/ElevenLabs.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import { differences, finishBy, submitBy } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// The shipped description of ElevenLabs against its official client: both send and read the same.

const { jobs } = elevenLabs
const adapter = describedAdapter("elevenlabs", Struct.omit(jobs!, ["models"]))
const [model] = jobs!.models

let upstream: Upstream
let account: Account
let client: ElevenLabsClient
beforeEach(async () => {
  upstream = await Upstream.start(describedProtocol(elevenLabs))
  account = { adapter, upstream, base: "" }
  client = new ElevenLabsClient({ apiKey: upstream.key, baseUrl: upstream.url, maxRetries: 0 })
})
afterEach(() => upstream.close())

const jobOf = (body: object) => {
  const { body: schema, count, submit } = model
  return request("elevenlabs/sound-effects", model.upstreamModel!, body, {
    described: { body: schema, count: count!, submit: submit! },
    result: "audios"
  })
}

/** Headers that name the client's program, and those that its fetch adds. */
const programs = /^header\.(?:x-fern-.*|cache-control|pragma)$/u
const apartFromPrograms = (found: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(found).filter(([name]) => !programs.test(name)))

const bytesOf = async (stream: ReadableStream<Uint8Array>) =>
  Buffer.from(await new Response(stream).arrayBuffer())

describe("ElevenLabs", () => {
  it("sound effects: the same request as @elevenlabs/elevenlabs-js", async () => {
    const ours = await submitBy(
      account,
      jobOf({ prompt: "A harbour", duration: 2.5, loop: true, prompt_influence: 0.4 })
    )
    await client.textToSoundEffects.convert({
      text: "A harbour",
      durationSeconds: 2.5,
      loop: true,
      promptInfluence: 0.4,
      modelId: "eleven_text_to_sound_v2"
    })
    assert.deepEqual(apartFromPrograms(differences(ours, upstream.lastSubmit)), {})
  })

  it("the client gets the sound that the description reads", async () => {
    const [item] = await finishBy(account, jobOf({ prompt: "p" }))
    const theirs = await bytesOf(await client.textToSoundEffects.convert({ text: "p" }))
    assert.isTrue(item?._tag === "Bytes" && Buffer.from(item.bytes).equals(theirs))
  })

  it("the client gets the errors of the description as its own", async () => {
    upstream.submitFaults = ["429"]
    const refused = await client.textToSoundEffects.convert({ text: "p" }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.instanceOf(refused, ElevenLabsError)
    assert.strictEqual((refused as ElevenLabsError).statusCode, 429)
  })
})
