import { buildApp } from '../app.js'
import { loadConfig } from '../config.js'

// `npm run openapi` writes the OpenAPI document to the standard output. The configuration contains
// only placeholders. The application connects to none of these addresses.
const config = loadConfig({
  DATABASE_URL: 'postgres://user@host/database',
  JWT_SECRET: 'a secret that nothing is signed with',
  CAPTCHA_SECRET: 'none',
  CLOUDINARY_URL: 'cloudinary://key:secret@cloud',
})
const { app } = await buildApp(config, { write: () => {} })
const { body } = await app.inject('/docs/json')
console.log(JSON.stringify(JSON.parse(body), null, 2))
