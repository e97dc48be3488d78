import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import S3rver from "s3rver"
import { Disk } from "./disk.ts"
import { Proxy } from "./network.ts"

/** Where a run stores media. */
export interface Media {
  readonly env: Readonly<Record<string, string>>
  /** Where the bytes are. */
  readonly folder: string
  /** A folder on a small disk. */
  readonly disk?: Disk
  /** In front of a bucket. */
  readonly proxy?: Proxy
  readonly close: () => Promise<unknown>
}

export const startDisk = async (folder: string): Promise<Media> => {
  const path = join(folder, "media")
  const disk = await Disk.mount(path)
  return {
    folder: path,
    env: { ARTIFACT_STORE: path },
    ...(disk === undefined ? {} : { disk }),
    close: async () => disk?.unmount()
  }
}

export const startBucket = async (folder: string): Promise<Media> => {
  const directory = join(folder, "bucket")
  await mkdir(directory)
  const server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory,
    configureBuckets: [{ name: "media", configs: [] }]
  })
  const { port } = await server.run()
  const proxy = await Proxy.start(port)
  return {
    folder: directory,
    env: {
      ARTIFACT_STORE: "s3://media/chaos",
      AWS_ENDPOINT_URL: `http://127.0.0.1:${proxy.port}`,
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER"
    },
    proxy,
    close: async () => {
      await proxy.close()
      await server.close()
    }
  }
}
