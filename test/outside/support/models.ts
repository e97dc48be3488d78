import type { experimental_generateVideo as generateVideo } from "ai"

/** Converts a model of one AI SDK package for another. Their types differ only in optional members. */
export const videoModel = (model: unknown) => model as Parameters<typeof generateVideo>[0]["model"]
