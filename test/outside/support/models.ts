import type { experimental_generateVideo as generateVideo } from "ai"

/**
 * A model of one package of the AI SDK for another: each brings its own types, which differ in
 * optional members alone.
 */
export const videoModel = (model: unknown) => model as Parameters<typeof generateVideo>[0]["model"]
