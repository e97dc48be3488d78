/** The parts of s3rver that the tests use; the package has no types. */
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
