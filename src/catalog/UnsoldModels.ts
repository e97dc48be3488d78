const day = "2026-11-22"

const noPrice = `no public price was found on ${day}`
const shutDown = (date: string) => `its vendor shut it down on ${date}`
const approved = `only organizations that its vendor has approved may use it, and ${noPrice}`
const byPicture = "it makes pictures: an entry of CATALOG_FILE sells it as a task, by the picture"
const pictureTokens = `the price of the text that it generates with pictures was not found on ${day}`
const alias = `it stands for changing models, and the one of ${day} was not found`
const sound = "it is charged by sound, which the token price of a text model does not have"

const all = (vendor: string, because: string, ...models: ReadonlyArray<string>) =>
  models.map((model) => [`${vendor}/${model}`, because] as const)

const openAi = (because: string, ...models: ReadonlyArray<string>) =>
  all("openai", because, ...models)
const google = (because: string, ...models: ReadonlyArray<string>) =>
  all("google", because, ...models)

/**
 * Models of the vendors' own clients that have no token price, with the reason that a refusal states. `CATALOG_FILE`
 * can give any of them a price. docs/catalog.md#models-without-a-price
 */
export const unsoldModels: ReadonlyMap<string, string> = new Map([
  ...openAi(shutDown("2026-10-23"), "gpt-4.1-nano", "o4-mini", "o3-mini", "o1", "o1-pro"),
  ...openAi(shutDown("2026-10-23"), "gpt-4o-2024-05-13", "gpt-4-turbo", "gpt-4-1106-preview"),
  ...openAi(shutDown("2026-10-23"), "gpt-4", "gpt-4-0613", "gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
  ...openAi(shutDown("2026-10-23"), "gpt-image-1"),
  ...openAi(shutDown("2026-09-28"), "gpt-3.5-turbo-1106"),
  ...openAi(shutDown("2026-08-10"), "gpt-5.3-chat-latest", "gpt-5.2-chat-latest"),
  ...openAi(shutDown("2026-07-23"), "gpt-5.1-codex", "gpt-5.1-chat-latest", "gpt-5-chat-latest"),
  ...openAi(shutDown("2026-07-23"), "gpt-4o-search-preview", "gpt-4o-mini-search-preview"),
  ...openAi(shutDown("2026-05-07"), "gpt-4o-audio-preview", "gpt-4o-mini-audio-preview"),
  ...openAi(shutDown("2026-03-26"), "gpt-4-0125-preview", "gpt-4-turbo-preview", "gpt-4-0314"),
  ...openAi(shutDown("2026-02-17"), "chatgpt-4o-latest"),
  ...openAi(shutDown("2026-02-12"), "codex-mini-latest"),
  ...openAi(shutDown("2025-10-27"), "o1-mini"),
  ...openAi(shutDown("2025-07-28"), "o1-preview"),
  ...openAi(shutDown("2025-06-06"), "gpt-4-32k", "gpt-4-32k-0314", "gpt-4-32k-0613"),
  ...openAi(shutDown("2024-12-06"), "gpt-4-vision-preview"),
  ...openAi(shutDown("2024-09-13"), "gpt-3.5-turbo-16k", "gpt-3.5-turbo-0301"),
  ...openAi(shutDown("2024-09-13"), "gpt-3.5-turbo-0613", "gpt-3.5-turbo-16k-0613"),
  ...openAi("its vendor never served it", "gpt-5.1-mini"),
  ...openAi("its vendor has removed it", "dall-e-2", "dall-e-3"),
  ...openAi("its vendor's lists no longer have it", "gpt-5-codex"),
  ...openAi(
    "it needs web search, which is not offered",
    "o3-deep-research",
    "o4-mini-deep-research"
  ),
  ...openAi(noPrice, "gpt-5.1-codex-max", "computer-use-preview", "gpt-6.2-astra-law"),
  ...openAi(approved, "gpt-daybreak-blue-latest", "gpt-daybreak-red-latest", "gpt-5.6-cyber"),
  ...openAi(approved, "gpt-6-cyber", "gpt-rosalind-research", "gpt-6-rosalind"),
  ...openAi(sound, "gpt-audio-mini"),
  ...openAi(byPicture, "gpt-image-1-mini", "gpt-image-1.5", "chatgpt-image-latest", "gpt-image-2"),
  ...openAi(byPicture, "gpt-image-2.5-sunburst", "gpt-image-2.5-flare"),
  ...openAi(byPicture, "gpt-image-2.6-sunburst", "gpt-image-2.6-flare"),

  ...all("anthropic", approved, "claude-mythos-5-2", "claude-mythos-preview"),
  ...all("anthropic", shutDown("2026-08-05"), "claude-opus-4-1"),

  ...google(alias, "gemini-flash-latest", "gemini-flash-lite-latest", "gemini-pro-latest"),
  ...google("its vendor has no paid tier for it", "gemma-4-26b-a4b-it", "gemma-4-31b-it"),
  ...google(pictureTokens, "gemini-3-pro-image", "nano-banana-pro-preview"),
  ...google(pictureTokens, "gemini-3.1-flash-lite-image", "gemini-2.5-flash-image"),
  ...google(shutDown("2026-10-29"), "gemini-3.1-flash-image"),
  ...google(shutDown("2026-06-25"), "gemini-3-pro-image-preview"),
  ...google(sound, "gemini-3.1-flash-tts-preview", "gemini-3.8-flash-tts"),
  ...google(sound, "gemini-3.8-flash-lite-tts", "gemini-3.5-transcribe"),
  ...google("it makes music", "lyria-3-clip-preview", "lyria-3-pro-preview", "lyria-3.5"),
  ...google("it makes videos", "gemini-omni-1.2-flash", "gemini-omni-1.1-flash"),
  ...google("it makes videos", "gemini-omni-flash-preview"),
  ...google(noPrice, "gemini-robotics-er-2-preview"),
  ...google("its vendor shut it down in August 2026", "gemini-robotics-er-1.6-preview"),
  ...google(
    "pictures, sound and video in its prompt have prices that the embedding routes do not report",
    "gemini-embedding-2"
  ),
  ...google(shutDown("2026-08-17"), "imagen-4.0-generate-001"),
  ...google("Vertex AI alone serves it", "imagen-3.0-capability-001", "imagen-4.0-upscale-preview"),
  ...google("Vertex AI alone serves it", "gemini-2.0-flash-live-preview-04-09"),
  ...google(shutDown("2025-12-09"), "gemini-live-2.5-flash-preview"),
  ...google(shutDown("2026-06-01"), "gemini-2.0-flash", "gemini-2.0-flash-001"),
  ...google(shutDown("2026-01-14"), "text-embedding-004"),
  ...google(shutDown("2025-08-14"), "embedding-001")
])
