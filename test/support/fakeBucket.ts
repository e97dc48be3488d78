import { createServer } from "node:http"
import { buffer } from "node:stream/consumers"
import { listen, stop } from "./localServer.ts"

interface Upload {
  readonly key: string
  readonly parts: Map<number, Buffer>
  initiated: Date
}

/** A bucket named `media` on 127.0.0.1. Implements the requests that s3rver lacks, and exposes its open uploads. */
export interface FakeBucket {
  readonly url: string
  readonly objects: Map<string, Buffer>
  /** Uploads that are neither completed nor aborted. */
  readonly uploads: Map<string, Upload>
  /** Methods whose next request gets a 503. */
  readonly failures: Array<string>
  /** Methods whose next response breaks off in its body. */
  readonly breaks: Array<string>
  readonly close: () => void
}

export const fakeBucket = async (): Promise<FakeBucket> => {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Upload>()
  const failures: Array<string> = []
  const breaks: Array<string> = []
  const server = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => undefined)
    // The sender closed the connection early, as an aborted upload does
    if (body === undefined) return
    const url = new URL(request.url ?? "/", "http://bucket.test")
    const key = decodeURIComponent(url.pathname.replace(/^\/media\/?/u, ""))
    const query = url.searchParams
    const uploadId = query.get("uploadId") ?? ""
    const upload = uploads.get(uploadId)
    const answer = (status: number, text = "", headers: Record<string, string> = {}) => {
      const breaking = breaks.indexOf(request.method ?? "")
      if (breaking < 0) return response.writeHead(status, headers).end(text)
      breaks.splice(breaking, 1)
      response.writeHead(status, { ...headers, "content-length": "10" }).flushHeaders()
      return setImmediate(() => response.destroy())
    }
    const failing = failures.indexOf(request.method ?? "")
    if (failing >= 0) {
      failures.splice(failing, 1)
      return answer(503)
    }
    switch (request.method) {
      case "PUT":
        if (query.has("uploadId")) {
          upload?.parts.set(Number(query.get("partNumber")), body)
          return answer(upload === undefined ? 404 : 200, "", { etag: `"${body.length}"` })
        }
        objects.set(key, body)
        return answer(200, "", { etag: `"${body.length}"` })
      case "POST":
        if (query.has("uploads")) {
          const id = `upload-${uploads.size + 1}`
          uploads.set(id, { key, parts: new Map(), initiated: new Date() })
          return answer(
            200,
            `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`
          )
        }
        if (upload === undefined) return answer(404)
        objects.set(
          key,
          Buffer.concat([...upload.parts].sort(([a], [b]) => a - b).map((it) => it[1]))
        )
        uploads.delete(uploadId)
        return answer(
          200,
          "<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>"
        )
      case "DELETE":
        if (query.has("uploadId")) uploads.delete(uploadId)
        else objects.delete(key)
        return answer(204)
      default: {
        if (key === "" && query.has("uploads")) {
          const prefix = query.get("prefix") ?? ""
          const list = [...uploads].filter(([, it]) => it.key.startsWith(prefix))
          return answer(
            200,
            `<ListMultipartUploadsResult>${list
              .map(
                ([id, it]) =>
                  `<Upload><Key>${it.key}</Key><UploadId>${id}</UploadId><Initiated>${it.initiated.toISOString()}</Initiated></Upload>`
              )
              .join("")}</ListMultipartUploadsResult>`
          )
        }
        const found = objects.get(key)
        return found === undefined
          ? answer(404, "<Error><Code>NoSuchKey</Code></Error>")
          : response.end(found)
      }
    }
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    objects,
    uploads,
    failures,
    breaks,
    close: () => void stop(server)
  }
}
