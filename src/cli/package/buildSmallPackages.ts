import { buildSmallPackages } from "./smallPackages.ts"

/** `npm run build:packages`: builds the packages without dependencies, each in its folder of `dist/packages`. */
buildSmallPackages()
