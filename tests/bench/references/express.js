// What people would otherwise write: Express and Sequelize.
import express from 'express'
import { createVerifier } from 'fast-jwt'
import { DataTypes, Sequelize } from 'sequelize'
import { env, MAP_URL, POOL_MAX } from './common.js'

const sequelize = new Sequelize(env('DATABASE_URL'), {
  logging: false,
  pool: { max: POOL_MAX },
  define: { timestamps: false, freezeTableName: true },
})
const Modulo = sequelize.define('modulo', { strNombreModulo: DataTypes.STRING })
const Permiso = sequelize.define('permisos_perfil', {
  idPerfil: DataTypes.INTEGER,
  idModulo: DataTypes.INTEGER,
  bitAgregar: DataTypes.BOOLEAN,
  bitEditar: DataTypes.BOOLEAN,
  bitConsulta: DataTypes.BOOLEAN,
  bitEliminar: DataTypes.BOOLEAN,
  bitDetalle: DataTypes.BOOLEAN,
})
Permiso.belongsTo(Modulo, { foreignKey: 'idModulo', as: 'modulo' })

const verify = createVerifier({ key: env('JWT_SECRET'), algorithms: ['HS256'] })
const app = express()

app.get('/health/live', (_request, response) => {
  response.json({ status: 'ok' })
})

app.use((request, response, next) => {
  try {
    verify(request.headers.authorization?.replace(/^Bearer /, '') ?? '')
    next()
  } catch {
    response.status(401).json({ message: 'Unauthorized' })
  }
})

app.get(MAP_URL, async (request, response) => {
  const rows = await Permiso.findAll({
    where: { idPerfil: Number(request.params.idPerfil) },
    include: { model: Modulo, as: 'modulo' },
    order: [['id', 'ASC']],
  })
  /** @type {Record<string, object>} */
  const permisos = {}
  for (const row of rows) {
    const { modulo, bitAgregar, bitEditar, bitConsulta, bitEliminar, bitDetalle } =
      /** @type {any} */ (row)
    const nombreModulo = modulo.strNombreModulo
    permisos[nombreModulo] = {
      nombreModulo,
      bitAgregar,
      bitEditar,
      bitConsulta,
      bitEliminar,
      bitDetalle,
    }
  }
  response.json({ success: true, permisos })
})

app.listen(Number(env('PORT')), '127.0.0.1')
