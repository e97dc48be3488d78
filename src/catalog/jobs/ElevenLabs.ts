import type { Vendor } from "../Vendors.ts"
import { object, promptOf } from "./Shapes.ts"

/**
 * Sound effects of ElevenLabs, based on its client `@elevenlabs/elevenlabs-js` 2.73.0 and its error page;
 * test/outside/adapters/elevenLabs.test.ts compares the requests. The response is the audio itself, so there is no job.
 * docs/reference/vendors.md#job-vendors
 */
export const elevenLabs: Vendor = {
  name: "elevenlabs",
  base: "https://api.elevenlabs.io",
  jobs: {
    auth: { scheme: "header", name: "xi-api-key" },
    submit: {
      path: "/v1/sound-generation",
      results: { whole: true, mime: "audio/mpeg" }
    },
    error: {
      code: ["$.detail.status"],
      message: ["$.detail.message", "$.detail[0].msg", "$.detail"]
    },
    failures: [
      { status: 400, class: "FATAL_CLIENT" },
      { status: 401, class: "OPERATOR" },
      { status: 422, class: "FATAL_CLIENT" },
      { status: 429, class: "RATE_LIMITED" }
    ],
    models: [
      {
        model: "sound-effects",
        upstreamModel: "eleven_text_to_sound_v2",
        result: "audios",
        body: object(
          {
            prompt: promptOf(450, "The sound, in words"),
            duration: {
              type: "number",
              minimum: 0.5,
              maximum: 30,
              description: "Seconds; absent: as long as the sound needs"
            },
            loop: { type: "boolean", default: false },
            prompt_influence: { type: "number", minimum: 0, maximum: 1, default: 0.3 }
          },
          ["prompt"]
        ),
        submit: {
          json: {
            text: { $: "$.body.prompt" },
            duration_seconds: { $: "$.body.duration" },
            loop: { $: "$.body.loop" },
            prompt_influence: { $: "$.body.prompt_influence" },
            model_id: { $: "$.model" }
          }
        },
        count: "1",
        price: { per: "expression", hold: "12000000" },
        source:
          "developer.puter.com/tutorials/elevenlabs-api-pricing, 0.12 USD a generation; read 2026-11-26"
      }
    ]
  }
}
