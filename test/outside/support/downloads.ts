/** Fetches a result for the AI SDK, which refuses to download from this machine. */
export const videoDownload =
  (upstream: { readonly url: string }, official: string = upstream.url) =>
  async ({ url }: { url: URL }) => {
    const response = await fetch(url.href.replace(official, upstream.url))
    if (!response.ok) throw new Error(`${url.href}: HTTP ${response.status}`)
    return { data: new Uint8Array(await response.arrayBuffer()), mediaType: "video/mp4" }
  }
