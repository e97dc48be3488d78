/** A model of fal that `jobVendor.ts` plays. */
export const jobCatalog = {
  add: [
    {
      label: "text-to-image-preview",
      vendor: "fal",
      model: "bench",
      adapter: "fal-queue",
      upstreamModel: "fal-ai/bench",
      input: { fields: { n: "num_images", seed: "seed" } }
    }
  ]
}
