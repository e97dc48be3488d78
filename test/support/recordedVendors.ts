import { mockAnthropic } from "./mockAnthropic.ts"
import { mockGemini } from "./mockGemini.ts"
import { mockOpenAi } from "./mockOpenAi.ts"
import { upstreamOfTests } from "./mockVendors.ts"
import { gatewayOfTests } from "./passthroughGateway.ts"

/** The gateway of one test file in front of recorded vendors of the three dialects. */
export const gatewayBeforeVendors = async () => {
  const openai = await upstreamOfTests(mockOpenAi())
  const anthropic = await upstreamOfTests(mockAnthropic())
  const google = await upstreamOfTests(mockGemini())
  const gateway = await gatewayOfTests({
    OPENAI_API_KEY: "sk-vendor-openai",
    OPENAI_BASE_URL: `${openai.origin}/v1`,
    ANTHROPIC_API_KEY: "sk-vendor-anthropic",
    ANTHROPIC_BASE_URL: anthropic.origin,
    GEMINI_API_KEY: "AIza-vendor-gemini",
    GEMINI_BASE_URL: google.origin
  })
  return { openai, anthropic, google, gateway }
}
