import { buildSmallPackages } from "./smallPackages.ts"

/** `npm run build:packages`: the packages without dependencies, each in its folder of `dist/packages`. */
buildSmallPackages()
