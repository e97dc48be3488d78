import { ElevenLabsClient, ElevenLabsError } from "@elevenlabs/elevenlabs-js"
import { Struct } from "effect"
import { assert, describe, it } from "vitest"
import { elevenLabs } from "../../../src/catalog/jobs/ElevenLabs.ts"
import { describedProtocol } from "../../../src/testing/vendors/DescribedProtocol.ts"
import { describedAdapter } from "../../../src/vendors/described/DescribedJobs.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import { differences, finishBy, submitBy } from "../support/requests.ts"
import type { Account } from "../support/requests.ts"

// The shipped description of ElevenLabs against its official client: both send and read the same.

const { jobs } = elevenLabs
const adapter = describedAdapter("elevenlabs", Struct.omit(jobs!, ["models"]))
const [model] = jobs!.models

const upstream = await upstreamOfTests(Upstream.start(describedProtocol(elevenLabs)))
const account: Account = { adapter, upstream, base: "" }
const client = new ElevenLabsClient({ apiKey: upstream.key, baseUrl: upstream.url, maxRetries: 0 })

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
  it("gets the same request for a sound effect as from @elevenlabs/elevenlabs-js", async () => {
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

  it("returns to the client the sound that the description reads", async () => {
    const [item] = await finishBy(account, jobOf({ prompt: "p" }))
    const theirs = await bytesOf(await client.textToSoundEffects.convert({ text: "p" }))
    assert.isTrue(item?._tag === "Bytes" && Buffer.from(item.bytes).equals(theirs))
  })

  it("returns the description's errors, which the client maps to its own", async () => {
    upstream.submitFaults = ["429"]
    const refused = await client.textToSoundEffects.convert({ text: "p" }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.instanceOf(refused, ElevenLabsError)
    assert.strictEqual((refused as ElevenLabsError).statusCode, 429)
  })
})
