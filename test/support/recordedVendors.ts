import { anthropicScript, mockAnthropic } from "./mockAnthropic.ts"
import { geminiScript, mockGemini } from "./mockGemini.ts"
import { mockOpenAi, openAiScript } from "./mockOpenAi.ts"
import { startGateway } from "./passthroughGateway.ts"

/** A gateway in front of recorded vendors of the three dialects. `reset` restores their scripts between tests. */
export const startBeforeVendors = async () => {
  const openai = await mockOpenAi()
  const anthropic = await mockAnthropic()
  const google = await mockGemini()
  const gateway = await startGateway({
    OPENAI_API_KEY: "sk-vendor-openai",
    OPENAI_BASE_URL: `${openai.origin}/v1`,
    ANTHROPIC_API_KEY: "sk-vendor-anthropic",
    ANTHROPIC_BASE_URL: anthropic.origin,
    GEMINI_API_KEY: "AIza-vendor-gemini",
    GEMINI_BASE_URL: google.origin
  })
  const vendors = [openai, anthropic, google]
  const reset = () => {
    for (const vendor of vendors) vendor.seen.length = 0
    openai.script = openAiScript
    anthropic.script = anthropicScript
    google.script = geminiScript
  }
  const stop = async () => {
    await gateway.stop()
    for (const vendor of vendors) await vendor.close()
  }
  return { openai, anthropic, google, gateway, reset, stop }
}
