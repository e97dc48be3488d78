/** s3rver brings no types: what the tests use of it. */
declare module "s3rver" {
  export default class S3rver {
    constructor(options: {
      readonly port: number
      readonly address: string
      readonly silent: boolean
      readonly directory: string
      readonly configureBuckets: ReadonlyArray<{ readonly name: string; readonly configs: [] }>
    })
    run(): Promise<{ readonly port: number }>
    close(): Promise<void>
  }
}
